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
pub enum BackoffDecision {
    /// The back-off is over.
    Ready,
    /// The next try has to wait.
    Wait {
        /// The rest of the wait.
        remaining: Duration,
        /// How long in all, as the waiting message has it.
        delay: Duration,
    },
}

impl BackoffDecision {
    /// What is left of a wait of which `elapsed` has passed.
    fn after(delay: Duration, elapsed: Duration) -> Self {
        match delay.saturating_sub(elapsed) {
            Duration::ZERO => Self::Ready,
            remaining => Self::Wait { remaining, delay },
        }
    }
}

/// How waits grow from failure to failure: from the first, doubling, to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// From the first wait to the longest.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// Up to `longest`; one that is shorter than [`INITIAL`] is the first wait too.
    fn up_to(longest: Duration) -> Self {
        Self { first: INITIAL.min(longest), longest }
    }

    /// The wait after so many failures in a row; none without a failure.
    pub fn after(self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        self.first.saturating_mul(2_u32.saturating_pow(doublings)).min(self.longest)
    }
}

/// Failures of one thing in a row, and the wait before it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    backoff: Backoff,
    count: u32,
}

impl Failures {
    /// No failure so far.
    pub const fn new(backoff: Backoff) -> Self {
        Self { backoff, count: 0 }
    }

    /// Counts a failure, and returns the wait after it.
    pub fn next_wait(&mut self) -> Duration {
        self.count = self.count.saturating_add(1);
        self.wait()
    }

    /// The wait after the failures so far.
    pub fn wait(&self) -> Duration {
        self.backoff.after(self.count)
    }

    /// How many there were in a row.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Forgets the failures: a try succeeded, or there is a reason to expect that the next one will.
    pub fn reset(&mut self) {
        self.count = 0;
    }
}
