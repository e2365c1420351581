//! How fast a log grows, and when it is checked next.

use std::time::Duration;

use super::LogRotationPolicy;
use crate::time::Mono;

/// No log is checked more often. Names of rotated logs have whole seconds.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// What was found where a log should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFileState {
    /// Nothing.
    Missing,
    /// A file of this size.
    Size(u64),
    /// Something that no runtime has made, such as a link; it is left alone.
    NotRegular,
}

/// What is done with a log that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogAction {
    /// The runtime is asked to open it again: a rotation was cut off.
    Reopen,
    /// It is rotated.
    Rotate,
    /// It is left as it is.
    Nothing,
}

/// The size of a log when it was last checked, and how fast it has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGrowth {
    size: u64,
    at: Mono,
    per_second: u64,
}

impl LogGrowth {
    /// A log that is seen for the first time. It may have come to this size within one interval.
    pub fn first(policy: &LogRotationPolicy, size: u64, at: Mono) -> Self {
        Self { size, at, per_second: rate(size, policy.interval) }
    }

    /// The same log, checked again. A burst is remembered for a few checks, because another one may follow.
    #[must_use]
    pub fn checked(self, size: u64, at: Mono) -> Self {
        // One that is smaller has been rotated since.
        let grown = size.checked_sub(self.size).unwrap_or(size);
        let per_second = rate(grown, at.since(self.at)).max(self.per_second / 2);
        Self { size, at, per_second }
    }

    /// The same log after its rotation.
    #[must_use]
    pub fn rotated(self, at: Mono) -> Self {
        Self { size: 0, at, ..self }
    }

    /// How long the next check can wait: until the log will be full, and not longer than the interval.
    pub fn wait(&self, policy: &LogRotationPolicy) -> Duration {
        let missing = policy.max_size.saturating_sub(self.size);
        let until_full = missing.saturating_mul(1000).checked_div(self.per_second);
        let until_full = until_full.map_or(policy.interval, Duration::from_millis);
        until_full.min(policy.interval).max(SHORTEST_WAIT)
    }
}

impl LogFileState {
    /// What is done with a log that is so.
    pub fn action(self, policy: &LogRotationPolicy) -> LogAction {
        match self {
            Self::Missing => LogAction::Reopen,
            Self::Size(size) if size >= policy.max_size => LogAction::Rotate,
            Self::Size(_) | Self::NotRegular => LogAction::Nothing,
        }
    }

    /// How many bytes are in it.
    pub fn size(self) -> u64 {
        match self {
            Self::Size(size) => size,
            Self::Missing | Self::NotRegular => 0,
        }
    }
}

fn rate(bytes: u64, time: Duration) -> u64 {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    bytes.saturating_mul(1000) / millis
}
