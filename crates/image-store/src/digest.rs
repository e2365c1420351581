//! Digests of content, and readers that compute them on the way.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some content. OCI allows other algorithms, which no registry uses; they are refused by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A text that is no digest of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no digest: it must be sha256: and 64 hexadecimal digits in lower case")]
pub struct InvalidDigest {
    /// The text.
    pub text: String,
}

const ALGORITHM: &str = "sha256:";

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Its 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The digest with these hexadecimal digits, if they are such.
    pub fn from_hex(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        let is_plain = digits.len() == 64
            && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if !is_plain {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digest = text.strip_prefix(ALGORITHM).and_then(Self::from_hex);
        digest.ok_or_else(|| InvalidDigest { text: text.chars().take(160).collect() })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Bytes that went past, with their digest so far.
#[derive(Debug)]
pub(crate) struct Hasher {
    state: Sha256,
    bytes: u64,
}

impl Hasher {
    pub(crate) fn new() -> Self {
        Self { state: Sha256::new(), bytes: 0 }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
    }

    /// How many bytes went past.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest(self.state.clone().finalize().into())
    }
}

/// Passes bytes on, and hashes them.
pub(crate) struct HashingReader<R> {
    inner: R,
    pub(crate) hasher: Hasher,
}

impl<R: Read> HashingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hasher: Hasher::new() }
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.hasher.add(&into[..read]);
        Ok(read)
    }
}

/// The chain id of a layer on top of others: what it and all below it make together.
pub(crate) fn chain_id(below: Option<&Digest>, diff_id: &Digest) -> Digest {
    match below {
        None => *diff_id,
        Some(below) => Digest::of(format!("{below} {diff_id}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lower_case_sha256_is_a_digest() {
        let hex = "0f".repeat(32);
        let good: Digest = format!("sha256:{hex}").parse().unwrap();
        assert_eq!(good.to_string(), format!("sha256:{hex}"));
        let bad = [
            hex.clone(),
            format!("sha512:{hex}"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{}", &hex[2..]),
            format!("sha256:{hex}00"),
            "sha256:../../../../etc/passwd".to_owned(),
            String::new(),
        ];
        for text in bad {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_chain_id_is_that_of_the_image_specification() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        assert_eq!(chain_id(None, &a), a);
        let both = format!("sha256:{} sha256:{}", a.hex(), b.hex());
        assert_eq!(chain_id(Some(&a), &b), Digest::of(both.as_bytes()));
    }
}
