//! The clock of the agent: wall time, monotonic time, and random draws for waits that are spread.
//!
//! [`SystemClock`] is the one place that reads the machine's clocks; `cargo xtask tidy` refuses every other. It is made once, in
//! `main`, and handed to all that need the time. A simulation hands in a clock of its own.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use jiff::Timestamp;
use oarsman_core::requeue::Jitter;
use oarsman_core::time::{Mono, Now};
use tokio::time::{Instant, sleep_until};

/// Both clocks, and draws for waits that are spread. Waits themselves are tokio's: a simulation pauses those.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Wall time. It may jump.
    fn wall(&self) -> Timestamp;
    /// A random fraction, new at every call.
    fn jitter(&self) -> Jitter;
    /// Where tokio's clock stood when this one was made.
    fn origin(&self) -> Instant;

    /// Time on the clock that never jumps.
    fn mono(&self) -> Mono {
        Mono(Instant::now().saturating_duration_since(self.origin()))
    }

    /// Monotonic and wall time of the same moment.
    fn now(&self) -> Now {
        Now { wall: self.wall(), mono: self.mono() }
    }

    /// The moment on tokio's clock.
    fn instant(&self, at: Mono) -> Instant {
        self.origin() + at.0
    }

    /// Waits for that time; without one, for ever.
    fn until(&self, at: Option<Mono>) -> BoxFuture<'static, ()> {
        match at {
            Some(at) => sleep_until(self.instant(at)).boxed(),
            None => pending().boxed(),
        }
    }
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
    drawn: AtomicU64,
}

impl SystemClock {
    /// A clock whose monotonic time begins at zero now.
    pub fn start() -> Self {
        let seed = RandomState::new().hash_one(0_u8);
        Self { origin: Instant::now(), drawn: AtomicU64::new(seed) }
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    fn jitter(&self) -> Jitter {
        // Splitmix64: waits need to be spread, not secret.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.drawn.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [a, b, c, d, ..] = bits.to_be_bytes();
        Jitter::from_bits(u32::from_be_bytes([a, b, c, d]))
    }

    fn origin(&self) -> Instant {
        self.origin
    }
}
