//! Converts durations to and from the wire: whole seconds, signed.

use std::time::Duration;

/// The duration in whole seconds. Rounded up, because a grace period must never be shorter than asked for.
pub(crate) fn to_wire(span: Duration) -> i64 {
    let whole = span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0));
    i64::try_from(whole).unwrap_or(i64::MAX)
}

/// The duration that a peer meant; a negative one is zero.
pub(crate) fn from_wire(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_round_up_and_extremes_do_not_wrap() {
        for (span, seconds) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_secs(30), 30),
            (Duration::from_millis(30_500), 31),
            (Duration::MAX, i64::MAX),
        ] {
            assert_eq!(to_wire(span), seconds, "{span:?}");
        }
        assert_eq!(from_wire(-5), Duration::ZERO);
        assert_eq!(from_wire(5), Duration::from_secs(5));
    }
}
