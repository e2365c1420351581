//! How watches differ.

use std::time::Duration;

use super::super::jitter::Waits;

/// How a watch is kept up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// How long the API server is asked to keep it open: somewhere between, so that not all come back in the same second.
    pub(super) open: (Duration, Duration),
    /// Whether a list comes as a stream.
    pub(super) streams: bool,
    /// How it waits once it has had a first answer.
    pub(super) waits: Waits,
}

impl Manner {
    /// For what this node lives by. A dead connection is noticed well within the forty seconds after which others would take this node
    /// for dead; asking again from where we were costs the API server less than the renewal of our lease.
    pub(crate) const ALERT: Self = Self {
        open: (Duration::from_secs(20), Duration::from_secs(25)),
        streams: true,
        waits: Waits::USUAL,
    };
    /// For the many small things that pods refer to; of most there is just one object, which a list brings as fast as a stream.
    pub(crate) const CALM: Self = Self {
        open: (Duration::from_secs(200), Duration::from_secs(290)),
        streams: false,
        waits: Waits::PATIENT,
    };
}
