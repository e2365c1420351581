//! The versions of the specification, and what each of them has.

use std::fmt;

/// A version of the specification that we speak. Older ones have results of another form, and are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CniVersion {
    /// Lists of plugins, and results with interfaces.
    V0_3_0,
    /// The same.
    V0_3_1,
    /// CHECK, and the result of ADD for DEL.
    V0_4_0,
    /// Addresses without a version of their own.
    V1_0_0,
    /// GC and STATUS.
    V1_1_0,
}

impl CniVersion {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V0_3_0, Self::V0_3_1, Self::V0_4_0, Self::V1_0_0, Self::V1_1_0];

    /// As configurations and results name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_3_0 => "0.3.0",
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }

    /// The version of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// Whether plugins know CHECK, and get the result of ADD for it and for DEL.
    pub(crate) fn has_check(self) -> bool {
        self >= Self::V0_4_0
    }

    /// Whether plugins know GC and STATUS.
    pub(crate) fn has_status(self) -> bool {
        self >= Self::V1_1_0
    }

    /// Whether each address of a result says whether it is of IPv4 or IPv6.
    pub(crate) fn has_address_versions(self) -> bool {
        self < Self::V1_0_0
    }
}

impl fmt::Display for CniVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_an_order_and_abilities() {
        let rows = [
            ("0.3.0", false, false, true),
            ("0.3.1", false, false, true),
            ("0.4.0", true, false, true),
            ("1.0.0", true, false, false),
            ("1.1.0", true, true, false),
        ];
        for (text, has_check, has_status, has_address_versions) in rows {
            let version = CniVersion::parse(text).unwrap();
            assert_eq!(version.to_string(), text);
            let abilities =
                (version.has_check(), version.has_status(), version.has_address_versions());
            assert_eq!(abilities, (has_check, has_status, has_address_versions), "{text}");
        }
        assert!(CniVersion::ALL.is_sorted());
        for text in ["", "0.1.0", "0.2.0", "1.1", "v1.0.0", "1.2.0"] {
            assert_eq!(CniVersion::parse(text), None, "{text}");
        }
    }
}
