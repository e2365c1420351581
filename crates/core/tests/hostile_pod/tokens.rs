//! Row C22: lifetimes of tokens that are no lifetimes.

use std::time::Duration;

use oarsman_core::token::refresh_after;

#[test]
fn a_token_of_any_lifetime_is_replaced_within_a_day_and_not_at_once() {
    let (shortest, day) = (Duration::from_secs(10), Duration::from_secs(86_400));
    for seconds in [0, 1, 12, 60, 600, 1 << 40, u64::MAX / 3, u64::MAX] {
        for dice in [0, 10_000, u64::MAX] {
            let used = refresh_after(Duration::from_secs(seconds), dice);
            assert!((shortest..=day).contains(&used), "{seconds} s, {dice}: {used:?}");
        }
    }
}
