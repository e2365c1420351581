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
    fn the_filler_has_just_as_many_bytes_in_lines_of_64() {
        for length in [0, 1, 63, 64, 65, 200] {
            let text: Vec<u8> = filler(length).flatten().copied().collect();
            assert_eq!(u64::try_from(text.len()), Ok(length));
            let newlines = text.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(u64::try_from(newlines), Ok(length / 64));
        }
    }
}
