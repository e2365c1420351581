//! Parses durations and sizes, and generates the output of `fill`.

use std::time::Duration;

/// `250ms`, `3s`, `2m`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

/// `4096`, `64Ki`, `8Mi`, `1Gi`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let factor = match unit {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit))
}

/// One line of filler, newline included.
static FILLER: &[u8; 64] = b"...............................................................\n";

/// The output of `fill:BYTES`, piece by piece: lines of 63 dots and a newline, the last one cut to
/// length.
pub fn filler(bytes: u64) -> impl Iterator<Item = &'static [u8]> {
    let line = FILLER.len() as u64;
    let rest = usize::try_from(bytes % line).unwrap_or_default();
    let whole = (0..bytes / line).map(|_| &FILLER[..]);
    whole.chain((rest > 0).then_some(&FILLER[..rest]))
}

/// The output of `numbers:BYTES/TIME`, tick by tick: lines of 63 digits and a newline, which count from 1.
#[derive(Debug, Clone)]
pub struct NumberedLines {
    lines_of_tick: u64,
    ticks: u64,
    next: u64,
}

impl NumberedLines {
    /// From one tick to the next.
    pub const TICK: Duration = Duration::from_millis(50);

    /// That many bytes a second for that long, in whole lines, of which each tick has at least one.
    pub fn new(per_second: u64, time: Duration) -> Self {
        let lines_of_tick = (per_second / (64 * 20)).max(1);
        let ticks = u64::try_from(time.as_millis() / Self::TICK.as_millis()).unwrap_or(u64::MAX);
        Self { lines_of_tick, ticks, next: 1 }
    }
}

impl Iterator for NumberedLines {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.ticks = self.ticks.checked_sub(1)?;
        let numbers = self.next..self.next + self.lines_of_tick;
        self.next = numbers.end;
        Some(numbers.flat_map(|number| format!("{number:063}\n").into_bytes()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let rows = [
            ("250ms", Some(250)),
            ("3s", Some(3_000)),
            ("2m", Some(120_000)),
            ("0s", Some(0)),
            ("3", None),
            ("s", None),
            ("1.5s", None),
            ("3h", None),
            ("18446744073709551615s", None),
        ];
        for (text, millis) in rows {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn bytes_may_have_a_binary_unit() {
        let rows = [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("64Ki", Some(65_536)),
            ("1Gi", Some(1 << 30)),
            ("1K", None),
            ("-1", None),
            ("99999999999Gi", None),
        ];
        for (text, number) in rows {
            assert_eq!(bytes(text), number, "{text}");
        }
    }

    #[test]
    fn numbered_lines_count_on_at_the_rate_that_was_asked_for() {
        let ticks: Vec<Vec<u8>> = NumberedLines::new(64 * 40, Duration::from_millis(150)).collect();
        assert_eq!(ticks.iter().map(Vec::len).collect::<Vec<_>>(), [128, 128, 128]);
        let text = String::from_utf8(ticks.concat()).unwrap();
        let numbers: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(NumberedLines::new(1, Duration::from_secs(1)).count(), 20);
    }

    #[test]
    fn the_filler_has_just_as_many_bytes_in_lines_of_64() {
        for length in [0, 1, 63, 64, 65, 200] {
            let text: Vec<u8> = filler(length).flatten().copied().collect();
            assert_eq!(u64::try_from(text.len()), Ok(length));
            let newlines = text.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(u64::try_from(newlines), Ok(length / 64));
        }
    }
}
