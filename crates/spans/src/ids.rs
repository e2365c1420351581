//! Ids of traces and spans. They are random, so that those of many nodes do not meet; nothing is decided by them but what is sampled.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// The id of a root span and of all spans below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId {
    pub(crate) high: u64,
    pub(crate) low: u64,
}

/// The id of one span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanId(u64);

impl TraceId {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.high.to_be_bytes(), self.low.to_be_bytes()].concat()
    }
}

impl SpanId {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Draws ids: numbers in their order, hashed with keys of the operating system.
#[derive(Debug, Default)]
pub(crate) struct IdSource {
    keys: RandomState,
    drawn: AtomicU64,
}

impl IdSource {
    pub(crate) fn trace(&self) -> TraceId {
        TraceId { high: self.draw(), low: self.draw() }
    }

    pub(crate) fn span(&self) -> SpanId {
        SpanId(self.draw())
    }

    /// Not zero: an id of zeros is none.
    fn draw(&self) -> u64 {
        self.keys.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed)).max(1)
    }
}
