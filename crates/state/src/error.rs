//! The error of every call on files.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use oarsman_seam::{Call, CallFault, SeamError};

/// Something on the machine did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {doing} {}: {why}", path.display())]
pub struct FileError {
    /// The step that failed.
    pub doing: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub why: String,
}

impl SeamError for FileError {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        Self { doing: call.name, path: PathBuf::from(&call.object), why: fault.to_string() }
    }
}

/// Makes an error of what the system said about a path.
pub(crate) fn failed<E: Display>(doing: &'static str, path: &Path) -> impl FnOnce(E) -> FileError {
    move |why| FileError { doing, path: path.to_owned(), why: why.to_string() }
}
