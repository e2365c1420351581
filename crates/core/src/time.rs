//! Two clocks, as plain values. Core never asks what time it is: `now` is an argument.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::Timestamp;

/// A reading of both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Wall time: for stamps a person reads and for what the runtime stamped. It may jump.
    pub wall: Timestamp,
    /// Monotonic time: for waits. It never jumps.
    pub mono: Mono,
}

/// A point on the monotonic clock, counted from when the agent's clock was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mono(pub Duration);

impl Mono {
    /// How long from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Mono {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

impl Sub<Duration> for Mono {
    type Output = Self;
    fn sub(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(wait))
    }
}

/// Wall time from `earlier` to `later`; zero when the clock went backwards in between.
pub fn wall_between(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or(Duration::ZERO)
}
