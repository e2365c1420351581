//! Pressure stall information: how long tasks waited for a resource.

/// How long tasks waited for one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// While at least one of them waited.
    pub some: PressureWindow,
    /// While all of them waited.
    pub full: PressureWindow,
}

/// One line of a file such as `cpu.pressure`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PressureWindow {
    /// Percent of the last ten seconds.
    pub avg10: f64,
    /// Percent of the last minute.
    pub avg60: f64,
    /// Percent of the last five minutes.
    pub avg300: f64,
    /// All in all, in microseconds.
    pub total: u64,
}

/// A file such as `cpu.pressure`. None if it has no line `some`; older kernels have no line `full` for CPUs.
pub fn pressure(text: &str) -> Option<Pressure> {
    let window = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        let mut window = PressureWindow::default();
        for (name, value) in line.split_ascii_whitespace().filter_map(|word| word.split_once('=')) {
            match name {
                "avg10" => window.avg10 = value.parse().ok()?,
                "avg60" => window.avg60 = value.parse().ok()?,
                "avg300" => window.avg300 = value.parse().ok()?,
                "total" => window.total = value.parse().ok()?,
                _ => {}
            }
        }
        Some(window)
    };
    Some(Pressure { some: window("some")?, full: window("full").unwrap_or_default() })
}
