//! When a pod is looked at again after a piece of work on it has ended.
//!
//! Nothing here draws a random number: the caller passes the [`Jitter`], so that a simulation can be repeated.

use std::time::Duration;

use crate::time::Mono;

/// A random number that spreads waits, so that pods which failed together are not retried together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter(u32);

impl Jitter {
    /// From 32 random bits.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// At least 0, below 1.
    fn fraction(self) -> f64 {
        f64::from(self.0) / (f64::from(u32::MAX) + 1.0)
    }
}

/// The wait made longer by up to half of itself.
pub fn jittered(wait: Duration, jitter: Jitter) -> Duration {
    jittered_by(wait, 0.5, jitter)
}

/// The wait made longer by up to this part of itself.
pub fn jittered_by(wait: Duration, part: f64, jitter: Jitter) -> Duration {
    wait.saturating_add(wait.mul_f64(jitter.fraction() * part))
}

/// The wait made shorter or longer by up to half of itself.
pub fn jittered_around(wait: Duration, jitter: Jitter) -> Duration {
    wait.mul_f64(0.5 + jitter.fraction())
}

/// How a piece of work on a pod ended, as far as the next look at the pod is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkResult {
    /// It did all there was to do.
    Done,
    /// The runtime's network is not up; it often comes soon.
    NetworkNotReady,
    /// Something is held back, and the first of its back-offs ends then.
    BackOff {
        /// When the first back-off ends.
        until: Mono,
    },
    /// The runtime's state of the pod could not be read.
    Unread,
    /// The work failed and is tried again after a wait.
    Failed,
}

/// How long to wait after what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// After success. What changes is told by events, and what those miss by the relist, which lists all pods at once;
    /// this is for what neither sees, and long, so that a node at rest is at rest.
    pub quiet: Duration,
    /// A back-off is looked at again after this much of it: `syncFrequency`.
    pub resync: Duration,
    /// The wait after a failure.
    pub failure: Duration,
    /// While the network is not ready.
    pub network: Duration,
    /// After anything but success, hints are gathered for this long. A kubelet that relists once a second
    /// has this for free; without it, a start that fails and thereby makes an event would spin.
    pub spacing: Duration,
}

impl Default for Requeue {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(3600),
            resync: Duration::from_secs(60),
            failure: Duration::from_secs(10),
            network: Duration::from_secs(1),
            spacing: Duration::from_secs(1),
        }
    }
}

impl Requeue {
    /// When to look again.
    pub fn next(&self, work: WorkResult, now: Mono, jitter: Jitter) -> Mono {
        let wait = match work {
            WorkResult::Done => self.quiet,
            WorkResult::NetworkNotReady => self.network,
            WorkResult::BackOff { until } => until.since(now).min(self.resync),
            WorkResult::Unread => self.spacing,
            WorkResult::Failed => self.failure,
        };
        now + jittered(wait, jitter)
    }

    /// From when on a hint is acted upon at once.
    pub fn hints_from(&self, work: WorkResult, now: Mono) -> Mono {
        match work {
            WorkResult::Done => now,
            WorkResult::NetworkNotReady
            | WorkResult::BackOff { .. }
            | WorkResult::Unread
            | WorkResult::Failed => now + self.spacing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Mono = Mono(Duration::from_secs(1000));

    fn wait_ms(work: WorkResult, bits: u32) -> u128 {
        let next = Requeue::default().next(work, NOW, Jitter::from_bits(bits));
        next.since(NOW).as_millis()
    }

    fn back_off(seconds: u64) -> WorkResult {
        WorkResult::BackOff { until: Mono(Duration::from_secs(seconds)) }
    }

    #[test]
    fn waits_are_those_of_a_kubelet_but_for_success_which_needs_none() {
        let half = 1 << 31;
        let table = [
            ("success, lowest draw", WorkResult::Done, 0, 3_600_000),
            ("success, middle draw", WorkResult::Done, half, 4_500_000),
            ("network", WorkResult::NetworkNotReady, 0, 1_000),
            ("network, middle draw", WorkResult::NetworkNotReady, half, 1_250),
            ("an unreadable state", WorkResult::Unread, 0, 1_000),
            ("failure", WorkResult::Failed, 0, 10_000),
            ("failure, middle draw", WorkResult::Failed, half, 12_500),
            ("back-off of 20 s", back_off(1020), 0, 20_000),
            ("back-off is spread too", back_off(1020), half, 25_000),
            ("back-off beyond the resync is cut", back_off(1300), 0, 60_000),
            ("back-off that is over", back_off(900), half, 0),
        ];
        for (name, work, bits, want) in table {
            assert_eq!(wait_ms(work, bits), want, "{name}");
        }
    }

    #[test]
    fn only_success_leaves_hints_undelayed() {
        let requeue = Requeue::default();
        assert_eq!(requeue.hints_from(WorkResult::Done, NOW), NOW);
        for work in
            [WorkResult::NetworkNotReady, back_off(1020), WorkResult::Unread, WorkResult::Failed]
        {
            assert_eq!(requeue.hints_from(work, NOW), NOW + Duration::from_secs(1), "{work:?}");
        }
    }

    proptest! {
        #[test]
        fn jitter_adds_less_than_half(ms in 0u64..10_000_000, bits: u32) {
            let wait = Duration::from_millis(ms);
            let spread = jittered(wait, Jitter::from_bits(bits));
            prop_assert!(spread >= wait);
            prop_assert!(spread.saturating_sub(wait) <= wait / 2);
        }
    }
}
