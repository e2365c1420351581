//! Reading an amount from text.

use super::{Format, NANOS_PER_UNIT, Quantity, divide_away_from_zero};

/// The longest run of digits the API server handles without big numbers; only such short
/// amounts does it write back in the words they came in.
const SHORT_DIGITS: usize = 18;
/// Amounts with a binary suffix are capped here.
const BINARY_CAP: i128 = (1_i128 << 63) - 1;

/// Why a text is not an amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// There is no number, or something other than a suffix follows it.
    #[error("{0:?} is not a quantity: write a number and a suffix, such as 250m, 1.5 or 64Mi")]
    NotANumber(String),
    /// The letters after the number mean nothing.
    #[error("{suffix:?} in {text:?} is no suffix: use n u m k M G T P E, Ki Mi Gi Ti Pi Ei or e3")]
    UnknownSuffix {
        /// The text that was parsed, including its suffix.
        text: String,
        /// What followed the number.
        suffix: String,
    },
    /// The number does not fit.
    #[error("{0:?} has too many digits or is too large for a quantity")]
    OutOfRange(String),
}

/// The pieces of a written amount.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros, but never empty.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    suffix: &'a str,
}

enum Scale {
    Ten(i32),
    Two(u32),
}

pub(super) fn parse(text: &str) -> Result<Quantity, ParseQuantityError> {
    let parts = split(text).ok_or_else(|| ParseQuantityError::NotANumber(text.to_owned()))?;
    let (scale, format) = interpret(parts.suffix).ok_or_else(|| {
        ParseQuantityError::UnknownSuffix { text: text.to_owned(), suffix: parts.suffix.to_owned() }
    })?;
    let size =
        magnitude(&parts, &scale).ok_or_else(|| ParseQuantityError::OutOfRange(text.to_owned()))?;
    Ok(Quantity {
        nanos: if parts.negative { -size } else { size },
        format: if is_below_one(size, format) { Format::DecimalSi } else { format },
        text: is_repeated_as_written(text, &parts, &scale).then(|| text.to_owned()),
    })
}

fn split(text: &str) -> Option<Parts<'_>> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = take_digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(after_point) => take_digits(after_point),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let significant = whole.trim_start_matches('0');
    let whole = if significant.is_empty() { "0" } else { significant };
    is_suffix_like(suffix).then_some(Parts { negative, whole, fraction, suffix })
}

fn take_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Letters that occur in suffixes, then perhaps a signed exponent; which letters mean something
/// is another question.
fn is_suffix_like(suffix: &str) -> bool {
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    digits.chars().all(|c| c.is_ascii_digit())
}

fn interpret(suffix: &str) -> Option<(Scale, Format)> {
    let decimal = |exponent| Some((Scale::Ten(exponent), Format::DecimalSi));
    let binary = |exponent| Some((Scale::Two(exponent), Format::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((Scale::Ten(exponent), Format::DecimalExponent))
        }
    }
}

/// The size in billionths, rounded up, or nothing when it is too large to hold.
fn magnitude(parts: &Parts<'_>, scale: &Scale) -> Option<i128> {
    let fraction = parts.fraction.trim_end_matches('0');
    let digits: i128 = format!("{}{fraction}", parts.whole).parse().ok()?;
    if digits == 0 {
        return Some(0);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    match scale {
        Scale::Ten(exponent) => {
            shift_decimal(digits, exponent.checked_sub(places)?.checked_add(9)?)
        }
        Scale::Two(exponent) => {
            let scaled = digits.checked_mul(1_i128.checked_shl(*exponent)?)?;
            let nanos = shift_decimal(scaled, 9 - places)?;
            Some(nanos.min(BINARY_CAP * NANOS_PER_UNIT))
        }
    }
}

fn shift_decimal(digits: i128, exponent: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return digits.checked_mul(factor?);
    }
    // Dividing by more than can be held still leaves something: the smallest amount there is.
    Some(factor.map_or(1, |factor| divide_away_from_zero(digits, factor)))
}

fn is_below_one(size: i128, format: Format) -> bool {
    format == Format::BinarySi && size > 0 && size < NANOS_PER_UNIT
}

/// The API server keeps the text it read when a quick look tells that it is in shortest form.
/// The look is not perfect (`2.125` passes), and what it lets pass is seen by every client.
fn is_repeated_as_written(text: &str, parts: &Parts<'_>, scale: &Scale) -> bool {
    let digits = parts.whole.len() + parts.fraction.len();
    match scale {
        _ if text == "0" => true,
        Scale::Ten(exponent) => {
            let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
            let lowest = exponent.saturating_sub(places);
            let shifted = format!("{}{}", parts.whole, parts.fraction);
            digits <= SHORT_DIGITS
                && lowest >= -9
                && lowest % 3 == 0
                && !shifted.ends_with("000")
                && !shifted.starts_with('0')
        }
        Scale::Two(exponent) => {
            let spent = usize::try_from(exponent * 3 / 10).unwrap_or(usize::MAX);
            parts.fraction.is_empty()
                && digits.saturating_add(spent) < 15
                && !is_divisible_by_eight(parts.whole)
        }
    }
}

fn is_divisible_by_eight(digits: &str) -> bool {
    digits.parse::<u64>().is_ok_and(|number| number % 8 == 0)
}
