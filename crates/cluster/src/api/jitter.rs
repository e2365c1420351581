//! Waits that differ from node to node, so that an API server that comes back is not met by all of them at once.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// After a first failure; doubled each time.
const FIRST: Duration = Duration::from_millis(500);
/// Long enough to be kind to a server in trouble, short enough that its return is noticed while people watch.
const LONGEST: Duration = Duration::from_secs(10);

/// How long to wait after so many failures in a row.
pub(super) fn after(failures: u32) -> Duration {
    let whole = FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST);
    between(whole / 2, whole)
}

/// Somewhere between the two.
pub(super) fn between(least: Duration, most: Duration) -> Duration {
    // The standard library seeds these with chance; nothing here is secret.
    let chance = RandomState::new().hash_one(0_u8);
    let span = u64::try_from(most.saturating_sub(least).as_millis()).unwrap_or(u64::MAX);
    least + Duration::from_millis(chance % span.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_vary() {
        for (failures, whole) in [(1, 500), (2, 1_000), (3, 2_000), (6, 10_000), (99, 10_000)] {
            let whole = Duration::from_millis(whole);
            let waits: Vec<_> = (0..50).map(|_| after(failures)).collect();
            assert!(waits.iter().all(|wait| (whole / 2..=whole).contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
        }
    }
}
