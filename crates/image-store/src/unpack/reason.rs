//! Why a layer was not unpacked.

use std::io;

use rustix::io::Errno;

/// A layer that was not unpacked.
#[derive(Debug, thiserror::Error)]
#[error("{entry}: {reason}")]
pub struct UnpackError {
    /// The entry, or where it would be.
    pub entry: String,
    /// Why.
    pub reason: UnpackReason,
}

impl UnpackError {
    pub(super) fn of(name: &[u8], reason: UnpackReason) -> Self {
        Self { entry: format!("entry {:?}", shown(name)), reason }
    }

    /// What happened when the entry after another was read.
    pub(super) fn after(name: Option<&[u8]>, error: io::Error) -> Self {
        let entry = match name {
            None => "the first entry".to_owned(),
            Some(name) => format!("the entry after {:?}", shown(name)),
        };
        Self { entry, reason: UnpackReason::of_read(error) }
    }

    pub(crate) fn of_stream(error: io::Error) -> Self {
        Self { entry: "the archive".to_owned(), reason: UnpackReason::of_read(error) }
    }
}

/// Names may be long, and any bytes.
const MAX_SHOWN: usize = 256;

fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(&name[..name.len().min(MAX_SHOWN)]).into_owned();
    if name.len() > MAX_SHOWN { text + "..." } else { text }
}

/// Why an entry was refused, or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum UnpackReason {
    /// A name that climbs.
    #[error("its name has a `..`, which could lead out of the image")]
    ParentInName,
    /// A name of zero bytes in the middle.
    #[error("its name has a zero byte")]
    ZeroInName,
    /// A path that Linux does not take.
    #[error("its name is longer than the 4095 bytes (255 between slashes) that Linux takes")]
    NameTooLong,
    /// A type of entry that no image has.
    #[error("its type {flag:?} is none of an image")]
    UnknownType {
        /// The type flag.
        flag: char,
    },
    /// `.wh.` with nothing, `.` or `..` after it.
    #[error("it is a whiteout that names no file")]
    NamelessWhiteout,
    /// A whiteout on the way to an entry.
    #[error("a directory on the way to it has the name of a whiteout")]
    WhiteoutOnTheWay,
    /// A character device 0:0.
    #[error("it is the character device 0:0, which overlayfs takes for a whiteout")]
    WhiteoutDevice,
    /// A hard link to what was removed.
    #[error("it is a hard link to {target:?}, which this layer removes")]
    LinkToWhiteout {
        /// The target.
        target: String,
    },
    /// A hard link to nothing.
    #[error(
        "it is a hard link to {target:?}, which is not in this layer: links to files of lower layers are not supported"
    )]
    NoLinkTarget {
        /// The target.
        target: String,
    },
    /// A hard link to a directory.
    #[error("it is a hard link to the directory {target:?}")]
    LinkToDirectory {
        /// The target.
        target: String,
    },
    /// A symbolic link to nothing.
    #[error("it is a symbolic link without target")]
    EmptyLink,
    /// Something on the way is a file.
    #[error("{part:?} on the way to it is not a directory")]
    NotADirectory {
        /// The component.
        part: String,
    },
    /// Links in a circle.
    #[error("there are too many symbolic links on the way to it")]
    TooManyLinks,
    /// A user that Linux does not have.
    #[error("its owner {owner} is no user or group of Linux")]
    InvalidOwner {
        /// The number.
        owner: u64,
    },
    /// The bound of entries.
    #[error("the layer has more than {most} entries")]
    TooManyEntries {
        /// The bound.
        most: u64,
    },
    /// The bound of bytes.
    #[error("the layer unpacks to more than {most} bytes")]
    TooManyBytes {
        /// The bound.
        most: u64,
    },
    /// The bound of compression.
    #[error(
        "{compressed} bytes of the layer decompress to more than {decompressed}: a decompression bomb"
    )]
    TooCompressed {
        /// Bytes that were read.
        compressed: u64,
        /// Bytes that came of them.
        decompressed: u64,
    },
    /// The bound of the memory for names.
    #[error("the names of the layer's directories are too long together")]
    TooManyDirectories,
    /// Bytes that are no archive, or end early.
    #[error("the archive cannot be read: {why}")]
    Unreadable {
        /// What is wrong.
        why: io::Error,
    },
    /// A call of the kernel failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The kernel's error, such as a full disk.
        source: io::Error,
    },
}

impl UnpackReason {
    /// Readers pass the bounds that they check through `io::Error`.
    pub(super) fn of_read(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(reason) => reason,
            Err(why) => Self::Unreadable { why },
        }
    }
}

/// Makes a reason of what the kernel said.
pub(super) fn system(doing: &'static str) -> impl FnOnce(Errno) -> UnpackReason {
    move |error| match error {
        Errno::NAMETOOLONG => UnpackReason::NameTooLong,
        other => UnpackReason::System { doing, source: other.into() },
    }
}
