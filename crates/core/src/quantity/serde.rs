//! Amounts in documents: texts, or plain numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use super::Quantity;

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrNumber)
    }
}

struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount such as 100m, 500Mi or 2")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        let wrong = |why| {
            E::custom(format!("{text:?} is no amount ({why}); write it like 100m, 500Mi or 2"))
        };
        Quantity::parse(text).map_err(wrong)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }
}
