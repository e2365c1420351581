//! The figures of both runtimes, and how the embedded one is judged.

use std::fmt;
use std::time::Duration;

use super::super::against::median;

/// What is allowed of containerd's times.
const TIMES: f64 = 0.5;
/// MiB for each pod, on top of its workload.
const PSS_MIB: f64 = 1.5;
/// Percent of a processor.
const IDLE_CPU: f64 = 0.1;
/// The release build.
const PROGRAM_MB: f64 = 30.0;

/// The same of both.
#[derive(Debug, Clone, Default)]
pub(super) struct BothRuntimes<T> {
    pub(super) containerd: T,
    pub(super) embedded: T,
}

impl<T> BothRuntimes<T> {
    pub(super) fn get(&self, is_embedded: bool) -> &T {
        if is_embedded { &self.embedded } else { &self.containerd }
    }

    pub(super) fn get_mut(&mut self, is_embedded: bool) -> &mut T {
        if is_embedded { &mut self.embedded } else { &mut self.containerd }
    }
}

/// Its name on a page.
pub(super) fn shown(is_embedded: bool) -> &'static str {
    if is_embedded { "embedded" } else { "containerd with runc" }
}

/// What one runtime came to over all rounds.
#[derive(Debug, Clone, Default)]
pub(super) struct RuntimeFigures {
    /// From RunPodSandbox to a container that runs; from StopContainer to a sandbox that is removed.
    pub(super) starts: Vec<Duration>,
    pub(super) deletes: Vec<Duration>,
    pub(super) bursts: [BurstTimes; 2],
    pub(super) pss_mib_a_pod: Option<f64>,
    pub(super) processes_a_pod: Option<usize>,
    /// Percent of a processor.
    pub(super) idle_cpu: Option<f64>,
    /// The files of its programs, in millions of bytes.
    pub(super) programs_mb: Option<f64>,
}

/// Until the last pod of many runs, and until the last one is gone.
#[derive(Debug, Clone, Default)]
pub(super) struct BurstTimes {
    pub(super) running: Vec<Duration>,
    pub(super) gone: Vec<Duration>,
}

impl fmt::Display for RuntimeFigures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "start {:.3} s, delete {:.3} s", middle(&self.starts), middle(&self.deletes))?;
        for burst in &self.bursts {
            write!(out, ", burst {:.2} s, {:.2} s", middle(&burst.running), middle(&burst.gone))?;
        }
        if let (Some(memory), Some(cpu)) = (self.pss_mib_a_pod, self.idle_cpu) {
            write!(out, ", {memory:.2} MiB a pod, {cpu:.2} % of a processor")?;
        }
        Ok(())
    }
}

fn middle(times: &[Duration]) -> f64 {
    median(times.iter().map(Duration::as_secs_f64))
}

/// The upper bound of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RuntimeBound {
    /// That share of containerd's.
    OfContainerd(f64),
    Absolute(f64),
    /// Told, and not judged.
    None,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(super) struct RuntimeRow {
    pub(super) what: String,
    pub(super) bound: RuntimeBound,
    pub(super) containerd: f64,
    pub(super) embedded: f64,
}

impl RuntimeRow {
    pub(super) fn ratio(&self) -> f64 {
        self.embedded / self.containerd
    }

    /// None where there is no bound.
    pub(super) fn is_reached(&self) -> Option<bool> {
        match self.bound {
            RuntimeBound::OfContainerd(share) => Some(self.ratio() <= share),
            RuntimeBound::Absolute(most) => Some(self.embedded <= most),
            RuntimeBound::None => None,
        }
    }
}

/// All rows; `bursts` are the numbers of pods at once, `idle` that of pods at rest.
pub(super) fn rows(
    both: &BothRuntimes<RuntimeFigures>,
    bursts: [usize; 2],
    idle: usize,
) -> Vec<RuntimeRow> {
    let row = |what: String, bound, of: &dyn Fn(&RuntimeFigures) -> f64| RuntimeRow {
        what,
        bound,
        containerd: of(&both.containerd),
        embedded: of(&both.embedded),
    };
    let half = RuntimeBound::OfContainerd(TIMES);
    let mut rows = vec![
        row("start of a pod, s".to_owned(), half, &|it| middle(&it.starts)),
        row("delete of a pod, s".to_owned(), half, &|it| middle(&it.deletes)),
    ];
    for (kind, count) in bursts.into_iter().enumerate() {
        let name = |end: &str| format!("{count} pods at once, the last one {end}, s");
        rows.push(row(name("runs"), half, &|it| middle(&it.bursts[kind].running)));
        rows.push(row(name("is gone"), half, &|it| middle(&it.bursts[kind].gone)));
    }
    let memory = "memory a pod on top of its workload (PSS), MiB".to_owned();
    let figure = |value: Option<f64>| value.unwrap_or(f64::NAN);
    rows.push(row(memory, RuntimeBound::Absolute(PSS_MIB), &|it| figure(it.pss_mib_a_pod)));
    let processes = "processes a pod beside its workload".to_owned();
    let count = |it: &RuntimeFigures| {
        let count = it.processes_a_pod.and_then(|count| u32::try_from(count).ok());
        figure(count.map(f64::from))
    };
    rows.push(row(processes, RuntimeBound::None, &count));
    let cpu = format!("processor time with {idle} pods at rest, % of one");
    rows.push(row(cpu, RuntimeBound::Absolute(IDLE_CPU), &|it| figure(it.idle_cpu)));
    let size = "size of the programs, MB".to_owned();
    rows.push(row(size, RuntimeBound::Absolute(PROGRAM_MB), &|it| figure(it.programs_mb)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(start: u64, memory: f64) -> RuntimeFigures {
        let starts = vec![Duration::from_millis(start)];
        RuntimeFigures { starts, pss_mib_a_pod: Some(memory), ..RuntimeFigures::default() }
    }

    #[test]
    fn half_of_containerds_time_is_reached_and_what_was_not_measured_is_not() {
        let both = BothRuntimes { containerd: figures(200, 6.6), embedded: figures(100, 1.6) };
        let rows = rows(&both, [50, 100], 100);
        let reached = |what: &str| {
            rows.iter().find(|row| row.what.starts_with(what)).map(RuntimeRow::is_reached)
        };
        assert_eq!(reached("start of a pod"), Some(Some(true)));
        assert_eq!(reached("delete of a pod"), Some(Some(false)), "nothing was measured");
        assert_eq!(reached("memory a pod"), Some(Some(false)));
        assert_eq!(reached("processes a pod"), Some(None));
        assert_eq!(reached("size of the programs"), Some(Some(false)), "nothing was measured");
    }
}
