//! What turns came to, and whether ours are within bounds of theirs.

use std::fmt;
use std::time::Duration;

use super::counts::CallCounts;

/// How much longer ours may take.
const TIMES: f64 = 1.05;
/// By how much more calls or writes a pod are noise: `Status` is called by the clock, a few times while twenty pods start.
const NOISE: f64 = 0.2;

/// The same of both programs.
#[derive(Debug, Clone)]
pub(super) struct Pairwise<T> {
    pub(super) theirs: T,
    pub(super) ours: T,
}

/// What one turn of a program came to.
#[derive(Debug, Clone, Default)]
pub(super) struct ProgramRound {
    /// From create to Running, and from delete to gone, pods one after the other.
    pub(super) starts: Vec<Duration>,
    pub(super) stops: Vec<Duration>,
    /// The same for the last of many at once, burst by burst.
    pub(super) bursts: Vec<Duration>,
    pub(super) bursts_gone: Vec<Duration>,
    /// For each pod.
    pub(super) start_counts: CallCounts,
    pub(super) stop_counts: CallCounts,
}

impl fmt::Display for ProgramRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |times: &[Duration]| median(times.iter().map(Duration::as_secs_f64));
        write!(
            f,
            "start {:.3} s, delete {:.3} s, burst {:.2} s and {:.2} s, calls {:.2} and {:.2}, writes {:.2} and {:.2}",
            seconds(&self.starts),
            seconds(&self.stops),
            seconds(&self.bursts),
            seconds(&self.bursts_gone),
            self.start_counts.all_calls(),
            self.stop_counts.all_calls(),
            self.start_counts.writes,
            self.stop_counts.writes,
        )
    }
}

/// How ours is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowBound {
    /// At most 1.05 of theirs.
    Ratio,
    /// Not more than theirs.
    Count,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(super) struct ComparisonRow {
    pub(super) what: &'static str,
    pub(super) bound: RowBound,
    pub(super) theirs: f64,
    pub(super) ours: f64,
}

impl ComparisonRow {
    pub(super) fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }

    pub(super) fn is_within(&self) -> bool {
        match self.bound {
            RowBound::Ratio => self.ratio() <= TIMES,
            RowBound::Count => self.ours <= self.theirs + NOISE,
        }
    }
}

/// The medians of all turns.
pub(super) fn rows(turns: &Pairwise<Vec<ProgramRound>>) -> Vec<ComparisonRow> {
    let times = |what, of: fn(&ProgramRound) -> Vec<Duration>| {
        let seconds = |turns: &[ProgramRound]| {
            median(turns.iter().flat_map(of).map(|time| time.as_secs_f64()))
        };
        ComparisonRow {
            what,
            bound: RowBound::Ratio,
            theirs: seconds(&turns.theirs),
            ours: seconds(&turns.ours),
        }
    };
    let counts = |what, of: fn(&ProgramRound) -> f64| {
        let count = |turns: &[ProgramRound]| median(turns.iter().map(of));
        ComparisonRow {
            what,
            bound: RowBound::Count,
            theirs: count(&turns.theirs),
            ours: count(&turns.ours),
        }
    };
    vec![
        times("start of a pod, s", |program_round| program_round.starts.clone()),
        times("delete of a pod, s", |program_round| program_round.stops.clone()),
        times("burst, the last one is Running, s", |program_round| program_round.bursts.clone()),
        times("burst, the last one is gone, s", |program_round| program_round.bursts_gone.clone()),
        counts("CRI calls a start", |program_round| program_round.start_counts.all_calls()),
        counts("CRI calls a delete", |program_round| program_round.stop_counts.all_calls()),
        counts("API writes a start", |program_round| program_round.start_counts.writes),
        counts("API writes a delete", |program_round| program_round.stop_counts.writes),
    ]
}

/// The middle one, or what is between the two in the middle; nothing has none.
pub(in crate::bench) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        None => f64::NAN,
        Some(upper) if values.len() % 2 == 1 => *upper,
        Some(upper) => f64::midpoint(values[middle - 1], *upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let rows: [(&[f64], f64); 3] =
            [(&[3.0], 3.0), (&[9.0, 1.0, 2.0], 2.0), (&[4.0, 1.0, 2.0, 100.0], 3.0)];
        for (values, expected) in rows {
            let found = median(values.iter().copied());
            assert!((found - expected).abs() < f64::EPSILON, "{values:?}: {found}");
        }
        assert!(median(std::iter::empty()).is_nan());
    }

    #[test]
    fn a_twentieth_longer_is_within_bounds_and_one_call_more_is_not() {
        let row =
            |bound, theirs, ours| ComparisonRow { what: "x", bound, theirs, ours }.is_within();
        assert!(row(RowBound::Ratio, 1.0, 1.05) && !row(RowBound::Ratio, 1.0, 1.06));
        assert!(row(RowBound::Count, 8.0, 8.1) && !row(RowBound::Count, 8.0, 9.0));
        assert!(!row(RowBound::Ratio, 1.0, f64::NAN) && !row(RowBound::Count, 1.0, f64::NAN));
    }
}
