//! Subnets: parsing, and the addresses in them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A network address with the length of its prefix, such as `10.200.7.0/24`. The bits behind the prefix are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

/// A text that is no subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no subnet: write it as 10.200.7.0/24 or fd00:1:2::/64, with zeros behind the prefix"
)]
pub struct SubnetError {
    text: String,
}

impl Subnet {
    /// The subnet of a prefix that an address is in; none when there is no such prefix.
    pub fn of(address: IpAddr, prefix: u8) -> Option<Self> {
        let free = width(address).checked_sub(u32::from(prefix))?;
        let mask = u128::MAX.checked_shl(free).unwrap_or(0);
        Some(Self { address: from_bits(address, bits(address) & mask), prefix })
    }

    /// Its first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The number of bits that all its addresses have in common.
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether it is one of IPv4.
    pub fn is_ipv4(self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether an address is in it.
    pub fn contains(self, address: IpAddr) -> bool {
        Self::of(address, self.prefix) == Some(self)
    }

    /// Whether it has an address in common with another one.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// The address that is `number` behind the first one; none of IPv4 is its last one, to which all hosts listen.
    pub(crate) fn nth(self, number: u32) -> Option<IpAddr> {
        let free = width(self.address) - u32::from(self.prefix);
        let size = 1_u128.checked_shl(free).unwrap_or(u128::MAX);
        let broadcast = u128::from(self.is_ipv4());
        let fits = u128::from(number) < size.saturating_sub(broadcast);
        fits.then(|| from_bits(self.address, bits(self.address) | u128::from(number)))
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Subnet {
    type Err = SubnetError;

    fn from_str(text: &str) -> Result<Self, SubnetError> {
        let parsed = text.split_once('/').and_then(|(address, prefix)| {
            let address: IpAddr = address.parse().ok()?;
            Self::of(address, prefix.parse().ok()?).filter(|subnet| subnet.address == address)
        });
        parsed.ok_or_else(|| SubnetError { text: text.to_owned() })
    }
}

impl TryFrom<String> for Subnet {
    type Error = SubnetError;

    fn try_from(text: String) -> Result<Self, SubnetError> {
        text.parse()
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> Self {
        subnet.to_string()
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// An address of the family of another one.
fn from_bits(family: IpAddr, bits: u128) -> IpAddr {
    match family {
        // Both operands of every caller are at most 32 bits long then.
        IpAddr::V4(_) => Ipv4Addr::from(u32::try_from(bits & 0xffff_ffff).unwrap_or(0)).into(),
        IpAddr::V6(_) => Ipv6Addr::from(bits).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        text.parse().unwrap()
    }

    #[test]
    fn subnets_are_parsed_and_shown() {
        for text in ["10.200.7.0/24", "0.0.0.0/0", "1.2.3.4/32", "fd00:1:2::/64", "::/0"] {
            assert_eq!(subnet(text).to_string(), text);
        }
        for text in ["", "10.0.0.0", "10.0.0.1/24", "10.0.0.0/33", "fd00::1/64", "::/129", "a/8"] {
            assert!(text.parse::<Subnet>().is_err(), "{text}");
        }
    }

    #[test]
    fn subnets_overlap_when_one_contains_the_other() {
        for (one, other, expected) in [
            ("10.0.0.0/8", "10.200.7.0/24", true),
            ("10.200.7.0/24", "10.200.8.0/24", false),
            ("10.200.7.0/24", "10.200.7.128/25", true),
            ("0.0.0.0/0", "10.200.7.0/24", true),
            ("fd00::/8", "fd00:1::/64", true),
            ("::/0", "10.200.7.0/24", false),
        ] {
            assert_eq!(subnet(one).overlaps(subnet(other)), expected, "{one} {other}");
            assert_eq!(subnet(other).overlaps(subnet(one)), expected, "{other} {one}");
        }
    }

    #[test]
    fn addresses_are_counted_from_the_first() {
        for (text, number, expected) in [
            ("10.200.7.0/24", 2, Some("10.200.7.2")),
            ("10.200.7.0/24", 254, Some("10.200.7.254")),
            ("10.200.7.0/24", 255, None),
            ("10.200.0.0/16", 258, Some("10.200.1.2")),
            ("fd00:1::/64", 255, Some("fd00:1::ff")),
            ("fd00:1::/126", 4, None),
        ] {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(subnet(text).nth(number), expected, "{text} {number}");
        }
    }
}
