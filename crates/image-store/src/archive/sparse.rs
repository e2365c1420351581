//! Files with holes: GNU's type `S`, and the three formats of GNU in pax headers.

use super::header::{BLOCK, Header, number as tar_number};
use super::pax::number;

/// Offset and length of stored bytes.
pub(super) type Extent = (u64, u64);

/// The first extents in a header of type `S`, and those in the blocks after it.
const FIRST_EXTENTS: (usize, usize) = (386, 4);
const IS_EXTENDED: usize = 482;
const REAL_SIZE: (usize, usize) = (483, 12);
const MORE_EXTENTS: (usize, usize) = (0, 21);
const MORE_IS_EXTENDED: usize = 504;
const EXTENT: usize = 24;

/// What the pax header of a sparse file says.
#[derive(Debug, Default)]
pub(super) struct SparsePax {
    pub(super) name: Option<Vec<u8>>,
    real_size: Option<u64>,
    major: u64,
    /// Of the formats 0.0 and 0.1: offsets and lengths in turn.
    numbers: Vec<u64>,
}

impl SparsePax {
    pub(super) fn keep(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        match key {
            b"name" => self.name = Some(value.to_vec()),
            b"realsize" | b"size" => self.real_size = Some(number(value)?),
            b"major" => self.major = number(value)?,
            b"minor" if number(value)? > 1 => {
                return Err("its format of sparse files is not known".to_owned());
            }
            b"offset" | b"numbytes" => self.numbers.push(number(value)?),
            b"map" => {
                self.numbers.clear();
                for text in value.split(|byte| *byte == b',').filter(|text| !text.is_empty()) {
                    self.numbers.push(number(text)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the entry is a sparse file.
    pub(super) fn is_sparse(&self) -> bool {
        self.real_size.is_some()
    }

    pub(super) fn real_size(&self) -> u64 {
        self.real_size.unwrap_or_default()
    }

    /// Whether the list of extents stands before the bytes of the file (format 1.0).
    pub(super) fn has_map_in_data(&self) -> Result<bool, String> {
        match self.major {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("its format of sparse files is not known".to_owned()),
        }
    }

    pub(super) fn extents(&self) -> Result<Vec<Extent>, String> {
        pairs(&self.numbers)
    }
}

fn pairs(numbers: &[u64]) -> Result<Vec<Extent>, String> {
    if !numbers.len().is_multiple_of(2) {
        return Err("its list of extents is cut off".to_owned());
    }
    Ok(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// The list of format 1.0: a count, then offsets and lengths, each on a line of its own, filled up to whole blocks. `next` gives the
/// next block, at most as many as a header may have.
pub(super) fn map_in_data(
    mut next: impl FnMut() -> Result<[u8; BLOCK], String>,
) -> Result<Vec<Extent>, String> {
    let (mut text, mut numbers, mut wanted) = (Vec::new(), Vec::new(), None);
    loop {
        text.extend_from_slice(&next()?);
        let mut start = 0;
        while let Some(end) = text[start..].iter().position(|byte| *byte == b'\n') {
            let parsed = number(&text[start..start + end])?;
            start += end + 1;
            match wanted {
                None => wanted = Some(parsed.checked_mul(2).ok_or("it has too many extents")?),
                Some(_) => numbers.push(parsed),
            }
            if wanted == Some(numbers.len() as u64) {
                return pairs(&numbers);
            }
        }
        text.drain(..start);
        // No number of ours is as long.
        if text.len() > BLOCK {
            return Err("its list of extents is malformed".to_owned());
        }
    }
}

/// The length and the extents of an entry of type `S`.
pub(super) fn of_header(
    header: &Header,
    mut next: impl FnMut() -> Result<[u8; BLOCK], String>,
) -> Result<(u64, Vec<Extent>), String> {
    if !header.is_gnu() {
        return Err("it is a sparse file, but its header is not GNU's".to_owned());
    }
    let size = u64::try_from(header.number(REAL_SIZE)?).map_err(|_| "its size is negative")?;
    let mut extents = Vec::new();
    let mut is_extended = add_extents(&header.0, FIRST_EXTENTS, IS_EXTENDED, &mut extents)?;
    while is_extended {
        is_extended = add_extents(&next()?, MORE_EXTENTS, MORE_IS_EXTENDED, &mut extents)?;
    }
    Ok((size, extents))
}

/// Whether there are more in the next block.
fn add_extents(
    block: &[u8; BLOCK],
    (start, count): (usize, usize),
    is_extended: usize,
    extents: &mut Vec<Extent>,
) -> Result<bool, String> {
    for extent in block[start..start + count * EXTENT].chunks_exact(EXTENT) {
        // The first empty one ends the list.
        if extent[0] == 0 || extent[12] == 0 {
            break;
        }
        let part = |field| {
            u64::try_from(tar_number(field)?).map_err(|_| "an extent is negative".to_owned())
        };
        extents.push((part(&extent[..12])?, part(&extent[12..])?));
    }
    Ok(block[is_extended] != 0)
}

/// Extents are in order, do not overlap, end within the file, and are as long as what is stored.
pub(super) fn check(extents: &[Extent], size: u64, stored: u64) -> Result<(), String> {
    let (mut end, mut sum) = (0_u64, 0_u64);
    for (offset, length) in extents {
        let next = offset.checked_add(*length).filter(|next| *offset >= end && *next <= size);
        end = next.ok_or("its extents overlap or go beyond its end")?;
        sum = sum.saturating_add(*length);
    }
    if sum == stored {
        Ok(())
    } else {
        Err(format!("its extents hold {sum} bytes, but {stored} are stored"))
    }
}
