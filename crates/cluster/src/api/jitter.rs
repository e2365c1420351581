//! Back-off with jitter, so that an API server that comes back is not called by all nodes at once.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use oarsman_core::backoff::Backoff;

/// A back-off that doubles to a bound, with jitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct JitteredBackoff(Backoff);

impl JitteredBackoff {
    /// For a first answer that a caller waits for: short at first. The node authorizer refuses the objects of a new pod until its own
    /// watch has seen the binding, which takes some milliseconds.
    pub(super) const FIRST_ANSWER: Self =
        Self(Backoff::new(Duration::from_millis(10), Duration::from_secs(10)));
    /// Spares a server that fails, and short enough that its return is noticed soon.
    pub(super) const DEFAULT: Self =
        Self(Backoff::new(Duration::from_millis(500), Duration::from_secs(10)));
    /// For values that are cached, and for many requests at a time.
    pub(super) const SLOW: Self =
        Self(Backoff::new(Duration::from_secs(1), Duration::from_secs(30)));

    /// How long to wait after so many failures in a row.
    pub(super) fn after(self, failures: u32) -> Duration {
        let whole = self.0.after(failures.max(1));
        between(whole / 2, whole)
    }
}

/// A random duration between the two.
pub(super) fn between(least: Duration, most: Duration) -> Duration {
    let span = u64::try_from(most.saturating_sub(least).as_millis()).unwrap_or(u64::MAX);
    least + Duration::from_millis(random() % span.saturating_add(1))
}

/// A random number.
pub(super) fn random() -> u64 {
    // Every hasher that the standard library makes is keyed anew; hashing nothing shows the key.
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_a_bound_and_is_jittered() {
        let table = [
            (JitteredBackoff::FIRST_ANSWER, 1, 10),
            (JitteredBackoff::FIRST_ANSWER, 4, 80),
            (JitteredBackoff::FIRST_ANSWER, 20, 10_000),
            (JitteredBackoff::DEFAULT, 1, 500),
            (JitteredBackoff::DEFAULT, 3, 2_000),
            (JitteredBackoff::DEFAULT, u32::MAX, 10_000),
            (JitteredBackoff::SLOW, 2, 2_000),
            (JitteredBackoff::SLOW, 99, 30_000),
        ];
        for (backoff, failures, whole) in table {
            let whole = Duration::from_millis(whole);
            let backoff: Vec<_> = (0..50).map(|_| backoff.after(failures)).collect();
            assert!(backoff.iter().all(|wait| (whole / 2..=whole).contains(wait)), "{backoff:?}");
            assert!(backoff.iter().any(|wait| *wait != backoff[0]), "{backoff:?}");
        }
    }
}
