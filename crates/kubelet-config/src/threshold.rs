//! Amounts that may be a fraction of a whole: `100Mi`, `15%`.

use std::fmt;

use oarsman_core::quantity::Quantity;
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

/// An amount, or a percentage of the capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum ThresholdValue {
    /// An amount.
    Amount(Quantity),
    /// A percentage.
    Percent(f64),
}

impl ThresholdValue {
    /// Reads one such as `1Gi` or `7.5%`.
    ///
    /// # Errors
    /// When it is neither an amount nor a percentage.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no amount; write it like 500Mi or 10%");
        match text.strip_suffix('%') {
            Some(number) => number
                .parse()
                .ok()
                .filter(|n: &f64| n.is_finite())
                .map(Self::Percent)
                .ok_or_else(wrong),
            None => Quantity::parse(text).map(Self::Amount).map_err(|_| wrong()),
        }
    }

    /// Whether it is negative, or above 100%.
    pub(crate) fn is_out_of_bounds(&self) -> bool {
        match self {
            Self::Amount(amount) => amount.is_negative(),
            Self::Percent(percent) => !(0.0..=100.0).contains(percent),
        }
    }
}

impl fmt::Display for ThresholdValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount(amount) => write!(f, "{amount}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Serialize for ThresholdValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ThresholdValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

/// A whole percentage: `50%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(u8);

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}%", self.0))
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
        let wrong = || D::Error::custom(format!("{text:?} is no percentage; write 0% to 100%"));
        number.filter(|number| *number <= 100).map(Self).ok_or_else(wrong)
    }
}
