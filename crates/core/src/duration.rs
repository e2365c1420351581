//! Durations as Kubernetes spells them: `1m2.5s`, `308ms`, `5m0s`.

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

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotADuration(String);

impl NotADuration {
    /// This text is none.
    pub fn of(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Display for NotADuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} is not a duration; write it like 20s, 1m30s or 250ms", self.0)
    }
}

impl std::error::Error for NotADuration {}

/// Longest first, so that `ms` is not taken for minutes.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// Reads a duration that is not negative.
pub fn parse(text: &str) -> Result<Duration, NotADuration> {
    let wrong = || NotADuration::of(text);
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let unit = UNITS.iter().find(|(unit, _)| begins_with(tail, unit)).ok_or_else(wrong)?;
        seconds += number.parse::<f64>().map_err(|_| wrong())? * unit.1;
        rest = &tail[unit.0.len()..];
    }
    let whole = !text.is_empty();
    Duration::try_from_secs_f64(seconds).ok().filter(|_| whole).ok_or_else(wrong)
}

/// Whether a text begins with this very unit.
fn begins_with(text: &str, unit: &str) -> bool {
    let rest = text.strip_prefix(unit);
    rest.is_some_and(|rest| rest.chars().next().is_none_or(|next| next.is_ascii_digit()))
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

    #[test]
    fn durations_are_read_as_kubernetes_writes_them() {
        let rows = [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("20s", Some(20_000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            ("250ms", Some(250)),
            ("1h0m0.5s", Some(3_600_500)),
            ("", None),
            ("20", None),
            ("s", None),
            ("-1s", None),
            ("1d", None),
            ("1s1", None),
            ("1..5s", None),
        ];
        for (text, millis) in rows {
            assert_eq!(parse(text).ok(), millis.map(Duration::from_millis), "{text:?}");
        }
    }
}
