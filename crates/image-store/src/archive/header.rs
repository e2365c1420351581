//! The block of 512 bytes before each entry.

use super::EntryKind;

pub(super) const BLOCK: usize = 512;

/// The place of a field.
pub(super) type Field = (usize, usize);

const NAME: Field = (0, 100);
const MODE: Field = (100, 8);
const UID: Field = (108, 8);
const GID: Field = (116, 8);
const SIZE: Field = (124, 12);
const MTIME: Field = (136, 12);
const CHECKSUM: Field = (148, 8);
const TYPE: usize = 156;
const LINK: Field = (157, 100);
const MAGIC: Field = (257, 8);
const MAJOR: Field = (329, 8);
const MINOR: Field = (337, 8);
const PREFIX: Field = (345, 155);

/// A header block whose checksum is right.
#[derive(Clone, Debug)]
pub(super) struct Header(pub(super) [u8; BLOCK]);

impl Header {
    /// Checks the checksum, which old programs computed with signed bytes.
    pub(super) fn check(block: [u8; BLOCK]) -> Result<Self, String> {
        let header = Self(block);
        let (mut unsigned, mut signed) = (0_i64, 0_i64);
        for (at, byte) in block.iter().enumerate() {
            let is_sum = (CHECKSUM.0..CHECKSUM.0 + CHECKSUM.1).contains(&at);
            let byte = if is_sum { b' ' } else { *byte };
            unsigned += i64::from(byte);
            signed += i64::from(byte.cast_signed());
        }
        match header.number(CHECKSUM)? {
            sum if sum == unsigned || sum == signed => Ok(header),
            _ => Err("the checksum of a header is wrong: this is no tar archive, or a damaged one"
                .to_owned()),
        }
    }

    pub(super) fn bytes(&self, (at, length): Field) -> &[u8] {
        &self.0[at..at + length]
    }

    /// Text up to the first zero byte.
    fn text(&self, field: Field) -> &[u8] {
        until_zero(self.bytes(field))
    }

    pub(super) fn number(&self, field: Field) -> Result<i64, String> {
        number(self.bytes(field))
    }

    fn unsigned(&self, field: Field, what: &str) -> Result<u64, String> {
        u64::try_from(self.number(field)?).map_err(|_| format!("its {what} is negative"))
    }

    pub(super) fn type_flag(&self) -> u8 {
        self.0[TYPE]
    }

    pub(super) fn is_gnu(&self) -> bool {
        self.bytes(MAGIC) == b"ustar  \0"
    }

    fn is_ustar(&self) -> bool {
        self.bytes(MAGIC).starts_with(b"ustar\0")
    }

    pub(super) fn name(&self) -> Vec<u8> {
        let (name, prefix) = (self.text(NAME), self.text(PREFIX));
        if !self.is_ustar() || prefix.is_empty() {
            return name.to_vec();
        }
        [prefix, b"/", name].concat()
    }

    pub(super) fn link(&self) -> Vec<u8> {
        self.text(LINK).to_vec()
    }

    pub(super) fn kind(&self) -> EntryKind {
        match self.type_flag() {
            // The oldest archives have no type for directories.
            0 if self.name().ends_with(b"/") => EntryKind::Directory,
            0 | b'0' | b'7' | b'S' => EntryKind::Regular,
            b'1' => EntryKind::HardLink,
            b'2' => EntryKind::Symlink,
            b'3' => EntryKind::CharDevice,
            b'4' => EntryKind::BlockDevice,
            b'5' => EntryKind::Directory,
            b'6' => EntryKind::Fifo,
            other => EntryKind::Other(other),
        }
    }

    pub(super) fn size(&self) -> Result<u64, String> {
        self.unsigned(SIZE, "size")
    }

    pub(super) fn mode(&self) -> Result<u32, String> {
        let mode = self.unsigned(MODE, "mode")?;
        // Some programs write the type of the file, too.
        u32::try_from(mode & 0o7777).map_err(|_| "its mode is too large".to_owned())
    }

    pub(super) fn owner(&self) -> Result<(u64, u64), String> {
        Ok((self.unsigned(UID, "owner")?, self.unsigned(GID, "group")?))
    }

    pub(super) fn mtime(&self) -> Result<i64, String> {
        self.number(MTIME)
    }

    pub(super) fn device(&self) -> Result<(u32, u32), String> {
        if !self.is_ustar() && !self.is_gnu() {
            return Ok((0, 0));
        }
        let part = |field| {
            u32::try_from(self.unsigned(field, "device number")?)
                .map_err(|_| "its device number is too large".to_owned())
        };
        Ok((part(MAJOR)?, part(MINOR)?))
    }
}

pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Octal digits, or a binary number whose first bit is set, as GNU writes what does not fit.
pub(super) fn number(field: &[u8]) -> Result<i64, String> {
    match field.first() {
        Some(first) if first & 0x80 != 0 => binary(field),
        _ => octal(field),
    }
}

fn octal(field: &[u8]) -> Result<i64, String> {
    let text = field.trim_ascii_start();
    let text = until_zero(text.strip_prefix(b"\0").unwrap_or(text)).trim_ascii();
    text.iter()
        .try_fold(0_i64, |sum, digit| match digit {
            b'0'..=b'7' => {
                sum.checked_mul(8).and_then(|sum| sum.checked_add(i64::from(digit - b'0')))
            }
            _ => None,
        })
        .ok_or_else(|| {
            format!("{:?} is no octal number of 63 bits", String::from_utf8_lossy(field))
        })
}

/// Two's complement, big-endian; the first bit only marks it.
fn binary(field: &[u8]) -> Result<i64, String> {
    let is_negative = field[0] & 0x40 != 0;
    let mut sum: i128 = if is_negative { -1 } else { 0 };
    for (at, byte) in field.iter().enumerate() {
        let byte = match (at, is_negative) {
            (0, false) => byte & 0x7f,
            _ => *byte,
        };
        sum = sum.checked_mul(256).ok_or("a number in a header is too large")? + i128::from(byte);
    }
    i64::try_from(sum).map_err(|_| "a number in a header is too large".to_owned())
}
