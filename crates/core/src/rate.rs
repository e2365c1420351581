//! How often something may be done: so many at once, and then one after each span of time.

use std::time::Duration;

use crate::time::Mono;

/// A token bucket: a number of calls per second, and a burst that may exceed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// How long it takes for one to come back.
    every: Duration,
    /// How many there are at most.
    most: u32,
    /// When all of it will be back.
    full: Mono,
}

impl TokenBucket {
    /// All of `most`, of which one comes back after each `every`.
    pub fn new(most: u32, every: Duration) -> Self {
        Self { every, most, full: Mono::default() }
    }

    /// Uses one, or says how long it takes until there is one.
    ///
    /// # Errors
    /// When there is none: the wait for the next.
    pub fn take(&mut self, now: Mono) -> Result<(), Duration> {
        let wait = self.wait(now);
        if wait.is_zero() {
            self.full = self.full.max(now) + self.every;
            return Ok(());
        }
        Err(wait)
    }

    /// How long it takes until there is one.
    pub fn wait(&self, now: Mono) -> Duration {
        let missing = self.full.since(now) + self.every;
        missing.saturating_sub(self.every.saturating_mul(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono(Duration::from_millis(millis))
    }

    #[test]
    fn a_bucket_is_emptied_and_refills_with_time() {
        let mut bucket = TokenBucket::new(3, Duration::from_millis(100));
        for _ in 0..3 {
            assert_eq!(bucket.take(at(1000)), Ok(()));
        }
        assert_eq!(bucket.take(at(1000)), Err(Duration::from_millis(100)));
        assert_eq!(bucket.take(at(1040)), Err(Duration::from_millis(60)));
        assert_eq!(bucket.take(at(1100)), Ok(()));
        assert_eq!(bucket.take(at(1100)), Err(Duration::from_millis(100)));
    }

    #[test]
    fn a_bucket_never_refills_beyond_its_burst() {
        let mut bucket = TokenBucket::new(2, Duration::from_millis(100));
        let taken = (0..9).filter(|_| bucket.take(at(1_000_000)).is_ok()).count();
        assert_eq!(taken, 2);
    }
}
