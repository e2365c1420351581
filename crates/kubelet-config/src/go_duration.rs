//! Durations in Go's notation, which may be negative.

use std::fmt;
use std::time::Duration;

use oarsman_core::duration;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// A duration; a negative one mostly switches something off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoDuration {
    length: Duration,
    is_negative: bool,
}

impl GoDuration {
    /// Zero.
    pub const ZERO: Self = Self { length: Duration::ZERO, is_negative: false };

    /// This many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self { length: Duration::from_secs(seconds), is_negative: false }
    }

    /// This many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self { length: Duration::from_millis(millis), is_negative: false }
    }

    /// Parses a duration such as `1m30s`, `-1s` or `0`.
    ///
    /// # Errors
    /// When the text is no duration.
    pub fn parse(text: &str) -> Result<Self, duration::NotADuration> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let length = duration::parse(unsigned).map_err(|_| duration::NotADuration::of(text))?;
        Ok(Self { length, is_negative: text.starts_with('-') && !length.is_zero() })
    }

    /// Its length; none if it is negative.
    pub fn length(self) -> Option<Duration> {
        Some(self.length).filter(|_| !self.is_negative)
    }

    /// Its length; zero if it is negative, which validation refuses where this is used.
    pub fn or_zero(self) -> Duration {
        self.length().unwrap_or_default()
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.length.is_zero()
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.is_negative
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        write!(f, "{sign}{}", duration::spell(self.length))
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DurationVisitor)
    }
}

/// Reads a duration as a text, or as a whole number of nanoseconds, as a few older fields allow.
pub(crate) fn or_nanoseconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<GoDuration, D::Error> {
    deserializer.deserialize_any(DurationOrNanosVisitor)
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = GoDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 20s, 1m30s or 250ms")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<GoDuration, E> {
        GoDuration::parse(text).map_err(E::custom)
    }
}

struct DurationOrNanosVisitor;

impl Visitor<'_> for DurationOrNanosVisitor {
    type Value = GoDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 20s, 1m30s or 250ms, or a number of nanoseconds")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<GoDuration, E> {
        DurationVisitor.visit_str(text)
    }

    fn visit_u64<E: Error>(self, nanoseconds: u64) -> Result<GoDuration, E> {
        Ok(GoDuration { length: Duration::from_nanos(nanoseconds), is_negative: false })
    }

    fn visit_i64<E: Error>(self, nanoseconds: i64) -> Result<GoDuration, E> {
        let length = Duration::from_nanos(nanoseconds.unsigned_abs());
        Ok(GoDuration { length, is_negative: nanoseconds < 0 })
    }
}
