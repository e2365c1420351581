//! Durations as Kubernetes messages spell them: `1m2.5s`, `308ms`, `5m0s`.

use std::time::Duration;

/// The duration to the millisecond.
pub fn spell(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) if millis > 0 => format!("{millis}ms"),
        (0, 0, s) => format!("{s}{}s", fraction(millis)),
        (0, m, s) => format!("{m}m{s}{}s", fraction(millis)),
        (h, m, s) => format!("{h}h{m}m{s}{}s", fraction(millis)),
    }
}

/// Thousandths after the point, as few digits as say it.
fn fraction(millis: u32) -> String {
    let digits = format!(".{millis:03}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_spelled_with_every_unit_below_the_largest() {
        let rows = [
            (0, "0s"),
            (7, "7ms"),
            (308, "308ms"),
            (1000, "1s"),
            (1020, "1.02s"),
            (10_000, "10s"),
            (62_500, "1m2.5s"),
            (160_000, "2m40s"),
            (300_000, "5m0s"),
            (3_600_000, "1h0m0s"),
            (90_061_001, "25h1m1.001s"),
        ];
        for (millis, expected) in rows {
            assert_eq!(spell(Duration::from_millis(millis)), expected);
        }
        assert_eq!(
            spell(Duration::from_micros(1_000_999)),
            "1s",
            "what is below a millisecond is dropped"
        );
    }
}
