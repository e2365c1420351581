//! Amounts of resources: exact, and in the text forms Kubernetes reads and writes.
//!
//! An amount is held as a whole number of billionths, the finest grain Kubernetes knows, so that
//! `0.1` is a tenth and sums never drift. Besides the amount it remembers in which family of
//! suffixes it was written, because it is written back in the same family.
//!
//! Kubernetes reads a text without any digit as zero and has no upper bound but memory; we refuse
//! both, the latter from about 10^29 on.

mod format;
mod parse;
mod serde;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

pub use parse::ParseQuantityError;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The family of suffixes an amount is written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Powers of a thousand: `m`, `k`, `M`, `G` and so on.
    #[default]
    DecimalSi,
    /// Powers of 1024: `Ki`, `Mi`, `Gi` and so on.
    BinarySi,
    /// A power of ten: `12e6`.
    DecimalExponent,
}

/// An exact amount of some resource.
///
/// Two amounts are equal when they are the same number, however they were written.
#[derive(Clone, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    /// The text it was read from, where the API server would repeat that text unchanged.
    text: Option<String>,
}

impl Quantity {
    /// The quantity 0.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi, text: None };

    /// Reads an amount such as `250m`, `1.5Gi` or `2e3`; blanks around it do not matter.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        parse::parse(text.trim())
    }

    /// A whole number of units.
    pub fn from_units(units: i64, format: Format) -> Self {
        Self { nanos: i128::from(units) * NANOS_PER_UNIT, format, text: None }
    }

    /// A whole number of thousandths, as CPU time is counted.
    pub fn from_millis(millis: i64) -> Self {
        let nanos = i128::from(millis) * NANOS_PER_MILLI;
        Self { nanos, format: Format::DecimalSi, text: None }
    }

    /// The amount in units; a fraction counts as a whole unit.
    pub fn units(&self) -> i64 {
        saturate(divide_away_from_zero(self.nanos, NANOS_PER_UNIT))
    }

    /// The amount in thousandths; a fraction of one counts as a whole one.
    pub fn millis(&self) -> i64 {
        saturate(divide_away_from_zero(self.nanos, NANOS_PER_MILLI))
    }

    /// Whether this is nothing.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether this is less than nothing.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether this is a whole number of units.
    pub fn is_whole(&self) -> bool {
        self.nanos % NANOS_PER_UNIT == 0
    }

    /// Whether this is a whole number of `unit`s, which must be more than nothing.
    pub fn is_multiple_of(&self, unit: &Self) -> bool {
        unit.nanos > 0 && self.nanos % unit.nanos == 0
    }

    /// The sum; nothing plus an amount is written the way that amount is.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format, text: None }
    }

    /// The difference, written the way this amount is.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_sub(other.nanos), format, text: None }
    }

    /// The same amount, or nothing if it is less than that.
    #[must_use]
    pub fn or_nothing(self) -> Self {
        if self.is_negative() { Self { nanos: 0, format: self.format, text: None } } else { self }
    }

    /// The same amount in whole thousandths, rounded away from zero, as the API keeps resources.
    #[must_use]
    pub fn rounded_to_millis(self) -> Self {
        if self.nanos % NANOS_PER_MILLI == 0 {
            return self;
        }
        let millis = divide_away_from_zero(self.nanos, NANOS_PER_MILLI);
        Self { nanos: millis.saturating_mul(NANOS_PER_MILLI), format: self.format, text: None }
    }

    /// The amount as API objects carry it.
    pub fn to_wire(&self) -> WireQuantity {
        WireQuantity(self.to_string())
    }
}

impl TryFrom<&WireQuantity> for Quantity {
    type Error = ParseQuantityError;

    fn try_from(wire: &WireQuantity) -> Result<Self, Self::Error> {
        Self::parse(&wire.0)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

fn divide_away_from_zero(dividend: i128, divisor: i128) -> i128 {
    let quotient = dividend / divisor;
    if dividend % divisor == 0 { quotient } else { quotient + dividend.signum() }
}

/// The bounds are those of amounts that are read, which are the same above and below zero.
fn saturate(amount: i128) -> i64 {
    let bound = if amount < 0 { -i64::MAX } else { i64::MAX };
    i64::try_from(amount).map_or(bound, |amount| amount.max(-i64::MAX))
}
