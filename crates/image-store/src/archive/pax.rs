//! The records of a pax header: `LENGTH KEY=VALUE\n`, each.

use std::collections::BTreeMap;

use super::sparse::SparsePax;

/// What a pax header says about the next entry.
#[derive(Debug, Default)]
pub(super) struct PaxRecords {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) mtime: Option<(i64, u32)>,
    /// A header may have tens of thousands.
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) sparse: SparsePax,
}

const XATTR: &[u8] = b"SCHILY.xattr.";
const SPARSE: &[u8] = b"GNU.sparse.";

impl PaxRecords {
    pub(super) fn parse(mut text: &[u8]) -> Result<Self, String> {
        let mut records = Self::default();
        while !text.is_empty() {
            let (key, value, rest) =
                record(text).ok_or("a record of its pax header is malformed")?;
            records.keep(key, value)?;
            text = rest;
        }
        Ok(records)
    }

    fn keep(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        // An empty value says that the header's own field counts.
        let text = (!value.is_empty()).then(|| value.to_vec());
        match key {
            b"path" => self.path = text,
            b"linkpath" => self.link = text,
            b"size" => self.size = optional_number(value)?,
            b"uid" => self.uid = optional_number(value)?,
            b"gid" => self.gid = optional_number(value)?,
            b"mtime" => self.mtime = if value.is_empty() { None } else { Some(time(value)?) },
            _ => {
                if let Some(name) = key.strip_prefix(XATTR) {
                    self.xattrs.insert(name.to_vec(), value.to_vec());
                } else if let Some(name) = key.strip_prefix(SPARSE) {
                    self.sparse.keep(name, value)?;
                }
            }
        }
        Ok(())
    }
}

/// The first record, and what follows it.
fn record(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = text.iter().take(20).position(|byte| *byte == b' ')?;
    let length = usize::try_from(number(&text[..space]).ok()?).ok()?;
    let (record, rest) = text.split_at_checked(length)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    let (key, value) = record.split_at(equals);
    (!key.is_empty()).then_some((key, &value[1..], rest))
}

fn optional_number(value: &[u8]) -> Result<Option<u64>, String> {
    if value.is_empty() { Ok(None) } else { number(value).map(Some) }
}

/// A decimal number without sign.
pub(super) fn number(text: &[u8]) -> Result<u64, String> {
    let is_plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let parsed = str::from_utf8(text).ok().filter(|_| is_plain).and_then(|it| it.parse().ok());
    parsed.ok_or_else(|| format!("{:?} is no number", String::from_utf8_lossy(text)))
}

/// Seconds, maybe negative and with a fraction, of which nine digits count.
fn time(value: &[u8]) -> Result<(i64, u32), String> {
    let bad = || format!("{:?} is no time", String::from_utf8_lossy(value));
    let text = str::from_utf8(value).map_err(|_| bad())?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (is_negative, digits) = match whole.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, whole),
    };
    let seconds = i64::try_from(number(digits.as_bytes())?).map_err(|_| bad())?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos: u32 = nanos.parse().map_err(|_| bad())?;
    Ok(match (is_negative, nanos) {
        (false, nanos) => (seconds, nanos),
        (true, 0) => (-seconds, 0),
        (true, nanos) => (-seconds - 1, 1_000_000_000 - nanos),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_may_be_before_1970_and_have_fractions() {
        for (text, wanted) in [
            ("12", (12, 0)),
            ("12.5", (12, 500_000_000)),
            ("12.1234567899", (12, 123_456_789)),
            ("-1", (-1, 0)),
            ("-1.25", (-2, 750_000_000)),
            ("-0.5", (-1, 500_000_000)),
        ] {
            assert_eq!(time(text.as_bytes()), Ok(wanted), "{text}");
        }
        for text in ["", "-", "1.x", "x", "1e9", "--1", "99999999999999999999"] {
            assert!(time(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_record_is_as_long_as_it_says() {
        let records = PaxRecords::parse(b"8 path=a\n".as_slice());
        assert!(records.is_err());
        let records = PaxRecords::parse(b"9 path=a\n30 SCHILY.xattr.user.a=x\ny=z\n\n").unwrap();
        assert_eq!(records.path.as_deref(), Some(b"a".as_slice()));
        let wanted = BTreeMap::from([(b"user.a".to_vec(), b"x\ny=z\n".to_vec())]);
        assert_eq!(records.xattrs, wanted);
        for text in ["9 path=a", "999 path=a\n", "x path=a\n", "6 =ab\n", " 9 path=a\n", "0 "] {
            assert!(PaxRecords::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
