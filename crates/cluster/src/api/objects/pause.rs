//! How long to wait after failures: longer each time, and never in step with others.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const LONGEST: Duration = Duration::from_secs(30);

/// A number that nobody can foresee.
pub(super) fn dice() -> u64 {
    // Every hasher that the standard library makes is keyed anew; hashing nothing shows the key.
    RandomState::new().hash_one(())
}

/// Counts failures in a row.
#[derive(Debug)]
pub(super) struct Pause {
    first: Duration,
    failures: u32,
}

impl Pause {
    /// Nobody has an answer yet and somebody waits for one: soon again at first.
    pub(super) fn of_the_impatient() -> Self {
        Self { first: Duration::from_millis(50), failures: 0 }
    }

    /// There is an answer already: when the API server comes back, not all should ask at once.
    pub(super) fn of_the_patient() -> Self {
        Self { first: Duration::from_secs(1), failures: 0 }
    }

    /// How long to wait after this failure.
    pub(super) fn next(&mut self) -> Duration {
        let doubled =
            self.first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = (self.failures + 1).min(16);
        let most = doubled.min(LONGEST);
        let half = u64::try_from(most.as_millis() / 2).unwrap_or(u64::MAX).max(1);
        most + Duration::from_millis(dice() % half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_bound_and_differ_by_half_at_most() {
        let mut pause = Pause::of_the_impatient();
        for want in [50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
            let (least, most) = (Duration::from_millis(want), Duration::from_millis(want * 3 / 2));
            let wait = pause.next();
            assert!(least <= wait && wait < most, "{wait:?} instead of {least:?} to {most:?}");
        }
        for _ in 0..100 {
            pause.next();
        }
        assert!(pause.next() >= LONGEST);
    }
}
