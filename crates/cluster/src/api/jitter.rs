//! Waits that differ from node to node, so that an API server that comes back is not met by all of them at once.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use oarsman_core::backoff::Backoff;

/// How long to wait after failures: longer each time, to a bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits(Backoff);

impl Waits {
    /// Nobody has an answer yet and somebody waits for one: soon again at first. What a new pod refers to is refused to its node until
    /// the API server's own watch has told it of the binding, which takes some milliseconds.
    pub(super) const FOR_A_FIRST_ANSWER: Self =
        Self(Backoff::new(Duration::from_millis(10), Duration::from_secs(10)));
    /// Kind to a server in trouble, and short enough that its return is noticed while people watch.
    pub(super) const USUAL: Self =
        Self(Backoff::new(Duration::from_millis(500), Duration::from_secs(10)));
    /// Where an answer is known that will do, and where a node asks for many such things at a time.
    pub(super) const PATIENT: Self =
        Self(Backoff::new(Duration::from_secs(1), Duration::from_secs(30)));

    /// How long to wait after so many failures in a row.
    pub(super) fn after(self, failures: u32) -> Duration {
        let whole = self.0.after(failures.max(1));
        between(whole / 2, whole)
    }
}

/// Somewhere between the two.
pub(super) fn between(least: Duration, most: Duration) -> Duration {
    let span = u64::try_from(most.saturating_sub(least).as_millis()).unwrap_or(u64::MAX);
    least + Duration::from_millis(dice() % span.saturating_add(1))
}

/// A number that nobody can foresee.
pub(super) fn dice() -> u64 {
    // Every hasher that the standard library makes is keyed anew; hashing nothing shows the key.
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_vary() {
        let table = [
            (Waits::FOR_A_FIRST_ANSWER, 1, 10),
            (Waits::FOR_A_FIRST_ANSWER, 4, 80),
            (Waits::FOR_A_FIRST_ANSWER, 20, 10_000),
            (Waits::USUAL, 1, 500),
            (Waits::USUAL, 3, 2_000),
            (Waits::USUAL, u32::MAX, 10_000),
            (Waits::PATIENT, 2, 2_000),
            (Waits::PATIENT, 99, 30_000),
        ];
        for (waits, failures, whole) in table {
            let whole = Duration::from_millis(whole);
            let waits: Vec<_> = (0..50).map(|_| waits.after(failures)).collect();
            assert!(waits.iter().all(|wait| (whole / 2..=whole).contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
        }
    }
}
