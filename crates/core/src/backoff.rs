//! Waiting longer after each failure, as tables of plain data that are asked before a try and told after it.

mod crash;
mod retry;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use crash::{Crash, CrashBackoff, container_key};
pub use retry::RetryBackoff;

/// The first wait, where no shorter maximum is configured.
pub const INITIAL: Duration = Duration::from_secs(10);
/// The longest wait, where no shorter one is configured.
pub const MAX: Duration = Duration::from_secs(300);
/// After so long without a failure the next one counts as the first.
pub const EXPIRY: Duration = Duration::from_secs(600);

/// Whether the next try may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Now.
    Ready,
    /// Not yet.
    Wait {
        /// How long still.
        remaining: Duration,
        /// How long in all: what a person is told.
        delay: Duration,
    },
}

impl Verdict {
    /// What is left of a wait of which `elapsed` has passed.
    fn after(delay: Duration, elapsed: Duration) -> Self {
        match delay.saturating_sub(elapsed) {
            Duration::ZERO => Self::Ready,
            remaining => Self::Wait { remaining, delay },
        }
    }
}

/// How waits grow: from the initial one, doubling, to the maximum.
#[derive(Clone, Copy, Debug)]
struct Steps {
    initial: Duration,
    max: Duration,
}

impl Steps {
    /// Up to `max`; one that is shorter than the usual first wait is the first wait too.
    fn up_to(max: Duration) -> Self {
        Self { initial: INITIAL.min(max), max }
    }

    /// The wait that follows this one.
    fn next(self, delay: Duration) -> Duration {
        delay.saturating_mul(2).min(self.max)
    }
}
