//! Writing an amount as text, in the shortest form that loses nothing.

use std::fmt;

use super::{Format, NANOS_PER_UNIT, Quantity};

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// From billionths upwards, a thousandfold each.
const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => self.write_canonical(f),
        }
    }
}

impl Quantity {
    fn write_canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.nanos / NANOS_PER_UNIT;
        match self.format {
            Format::BinarySi if self.is_whole() && units.abs() >= 1024 => write_binary(units, f),
            Format::BinarySi | Format::DecimalSi => {
                let (mantissa, step) = shorten(self.nanos, 1000, DECIMAL_SUFFIXES.len() - 1);
                write!(f, "{mantissa}{}", if mantissa == 0 { "" } else { DECIMAL_SUFFIXES[step] })
            }
            Format::DecimalExponent => write_exponent(self.nanos, f),
        }
    }
}

fn write_binary(units: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (mantissa, step) = shorten(units, 1024, BINARY_SUFFIXES.len() - 1);
    write!(f, "{mantissa}{}", BINARY_SUFFIXES[step])
}

fn write_exponent(nanos: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (mantissa, step) = shorten(nanos, 1000, usize::MAX);
    match (mantissa, step) {
        (0, _) | (_, 3) => write!(f, "{mantissa}"),
        (_, 0..3) => write!(f, "{mantissa}e-{}", (3 - step) * 3),
        _ => write!(f, "{mantissa}e{}", (step - 3) * 3),
    }
}

/// Divides by `base` as long as nothing is lost, and tells how often.
fn shorten(mut number: i128, base: i128, most: usize) -> (i128, usize) {
    let mut times = 0;
    while number != 0 && number % base == 0 && times < most {
        number /= base;
        times += 1;
    }
    (number, times)
}
