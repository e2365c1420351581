//! Names in an archive as paths below its root.

use super::UnpackReason;

/// What Linux takes, without the zero at the end.
const MAX_PATH: usize = 4095;
const MAX_COMPONENT: usize = 255;

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// What AUFS kept for itself in layers.
const AUFS: &[u8] = b".wh..wh.";

/// Where an entry belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EntryPath {
    /// The directory, without slashes at its ends; empty for the root.
    pub(super) parent: Vec<u8>,
    /// The name in it.
    pub(super) name: Vec<u8>,
}

impl EntryPath {
    /// None for the root itself, whose attributes are not the layer's to set: containerd ignores it, too.
    pub(super) fn of(name: &[u8]) -> Result<Option<Self>, UnpackReason> {
        let mut parts = components(name)?;
        let Some(last) = parts.pop() else { return Ok(None) };
        if parts.iter().any(|part| part.starts_with(WHITEOUT)) {
            return Err(UnpackReason::WhiteoutOnTheWay);
        }
        Ok(Some(Self { parent: parts.join(&b'/'), name: last.to_vec() }))
    }

    pub(super) fn whole(&self) -> Vec<u8> {
        join(&self.parent, &self.name)
    }
}

pub(super) fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    if parent.is_empty() { name.to_vec() } else { [parent, b"/", name].concat() }
}

/// The parts of a name between slashes.
fn components(name: &[u8]) -> Result<Vec<&[u8]>, UnpackReason> {
    if name.contains(&0) {
        return Err(UnpackReason::ZeroInName);
    }
    let parts = name.split(|byte| *byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&b"..".as_slice()) {
        return Err(UnpackReason::ParentInName);
    }
    let is_long = parts.iter().any(|part| part.len() > MAX_COMPONENT);
    if is_long || name.len() > MAX_PATH {
        return Err(UnpackReason::NameTooLong);
    }
    Ok(parts)
}

/// What the name of an entry says about lower layers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whiteout<'a> {
    /// Nothing: it is an entry.
    No,
    /// The directory that it is in hides those below.
    Opaque,
    /// A file or directory of this name is gone.
    Of(&'a [u8]),
    /// A file of AUFS that means nothing to others.
    Ignored,
}

pub(super) fn whiteout(name: &[u8]) -> Result<Whiteout<'_>, UnpackReason> {
    if name == OPAQUE {
        return Ok(Whiteout::Opaque);
    }
    if name.starts_with(AUFS) {
        return Ok(Whiteout::Ignored);
    }
    match name.strip_prefix(WHITEOUT) {
        None => Ok(Whiteout::No),
        Some(b"" | b"." | b"..") => Err(UnpackReason::NamelessWhiteout),
        Some(of) => Ok(Whiteout::Of(of)),
    }
}
