//! Profiles of watches.

use std::time::Duration;

use super::super::jitter::JitteredBackoff;

/// How long a watch is held open, how it lists, and its back-off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchProfile {
    /// The bounds of the requested timeout: a random one between them, so that not all watches are renewed in the same second.
    pub(super) open: (Duration, Duration),
    /// Whether a list comes as a stream.
    pub(super) streams: bool,
    /// How it waits once it has had a first answer.
    pub(super) backoff: JitteredBackoff,
}

impl WatchProfile {
    /// For the node's pods and its own object. A dead connection is noticed well within the forty seconds after which the node would
    /// count as dead; resuming a watch costs the API server less than a renewal of the lease.
    pub(crate) const SHORT_LIVED: Self = Self {
        open: (Duration::from_secs(20), Duration::from_secs(25)),
        streams: true,
        backoff: JitteredBackoff::DEFAULT,
    };
    /// For the many objects that pods refer to; most selections have just one object, which a list returns as fast as a stream.
    pub(crate) const LONG_LIVED: Self = Self {
        open: (Duration::from_secs(200), Duration::from_secs(290)),
        streams: false,
        backoff: JitteredBackoff::SLOW,
    };
}
