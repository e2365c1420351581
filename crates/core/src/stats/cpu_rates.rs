//! CPU time in the last window, from two readings of a group.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time::Mono;

/// How long to wait for a second reading of a group that has none before.
pub const FIRST_WINDOW: Duration = Duration::from_millis(100);
/// A shorter window says little: the last rate is kept instead.
const SHORTEST_WINDOW: Duration = Duration::from_secs(1);
/// What a longer one says is no longer about now.
const LONGEST_WINDOW: Duration = Duration::from_secs(2 * 60);

/// The CPU rates of control groups, by their paths.
#[derive(Clone, Debug, Default)]
pub struct CpuRates {
    groups: BTreeMap<String, CpuRate>,
}

/// The last reading, and the rate between it and the one before.
#[derive(Clone, Copy, Debug)]
struct CpuRate {
    at: Mono,
    total: u64,
    nano_cores: Option<u64>,
}

impl CpuRates {
    /// Takes a reading of a group's CPU time in nanoseconds.
    pub fn observe(&mut self, group: &str, at: Mono, total: u64) {
        let Some(rate) = self.groups.get_mut(group) else {
            self.groups.insert(group.to_owned(), CpuRate { at, total, nano_cores: None });
            return;
        };
        let window = at.since(rate.at);
        // A group that is known by two names is read twice in one pass.
        if window < FIRST_WINDOW / 2 {
            return;
        }
        // Less than before: it is another group of the same name.
        let used = total.checked_sub(rate.total).filter(|_| window <= LONGEST_WINDOW);
        let nano_cores = used.and_then(|used| per_second(used, window));
        if rate.nano_cores.is_none() || nano_cores.is_none() || window >= SHORTEST_WINDOW {
            *rate = CpuRate { at, total, nano_cores };
        }
    }

    /// CPU nanoseconds in each second of the last window; none before a second reading.
    pub fn nano_cores(&self, group: &str) -> Option<u64> {
        self.groups.get(group)?.nano_cores
    }

    /// The groups that were read since then and have only one reading.
    pub fn without_rate(&self, since: Mono) -> Vec<String> {
        let is_missing = |rate: &CpuRate| rate.nano_cores.is_none() && rate.at >= since;
        let missing = self.groups.iter().filter(|(_, rate)| is_missing(rate));
        missing.map(|(group, _)| group.clone()).collect()
    }

    /// Forgets the groups that were not read for so long that their next rate would not be about now.
    pub fn forget_old(&mut self, now: Mono) {
        self.groups.retain(|_, rate| now.since(rate.at) <= LONGEST_WINDOW);
    }
}

fn per_second(used: u64, window: Duration) -> Option<u64> {
    let rate = u128::from(used) * 1_000_000_000 / Some(window.as_nanos()).filter(|it| *it > 0)?;
    u64::try_from(rate).ok()
}
