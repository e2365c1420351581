//! What fuzzing a target came to, and how the engine's log tells it.

/// The figures of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TargetFigures {
    pub(super) name: String,
    pub(super) minutes: u64,
    pub(super) executions: u64,
    /// Edges of the code that inputs have reached.
    pub(super) coverage: u64,
    /// Inputs in the minimised corpus.
    pub(super) inputs: usize,
    pub(super) crashes: u64,
}

/// What the log of the engine tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EngineLog {
    pub(super) executions: u64,
    pub(super) coverage: u64,
}

impl EngineLog {
    /// Reads a log; what it does not tell is zero.
    pub(super) fn parse(text: &str) -> Self {
        let coverage = text.lines().rev().find_map(|line| number_after(line, " cov: "));
        let counted = text.lines().find_map(|line| number_after(line, "number_of_executed_units:"));
        // A crash ends it before it counts; the number of the last line is nearly right.
        let last = || text.lines().rev().find_map(|line| number_after(line.strip_prefix('#')?, ""));
        Self {
            executions: counted.or_else(last).unwrap_or_default(),
            coverage: coverage.unwrap_or_default(),
        }
    }
}

/// The number that follows some words.
fn number_after(line: &str, words: &str) -> Option<u64> {
    let rest = line.split_once(words)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_executions_and_coverage() {
        let log = "INFO: Seed: 1\n#2\tINITED cov: 40 ft: 50 corp: 1/1b exec/s: 0 rss: 30Mb\n\
            #4096\tpulse  cov: 120 ft: 300 corp: 9/1Kb lim: 8 exec/s: 2048 rss: 41Mb\n\
            stat::number_of_executed_units: 5000\nstat::peak_rss_mb: 41\n";
        assert_eq!(EngineLog::parse(log), EngineLog { executions: 5000, coverage: 120 });
    }

    #[test]
    fn a_crash_leaves_the_figures_of_the_last_line() {
        let log = "#2\tINITED cov: 40 ft: 50\n#300\tNEW    cov: 60 ft: 70\nthread panicked\n";
        assert_eq!(EngineLog::parse(log), EngineLog { executions: 300, coverage: 60 });
    }
}
