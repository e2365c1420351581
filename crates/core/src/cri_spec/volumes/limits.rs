//! How much the volumes of a pod may hold that are made of objects and fields.
//!
//! A ConfigMap or Secret has at most 1 MiB, but a spec may list one of its keys as often as it likes, and what the list asks for is
//! written by the agent, mostly into memory. 64 MiB are 64 whole objects; a spec that the API server takes has no room for many more
//! than this number of items.

use std::cell::Cell;

use crate::cri_spec::error::{ConfigError, PayloadError};

/// All files of a pod together, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// All files of a pod together.
const MOST_FILES: usize = 16 * 1024;

/// What the volumes of a pod have used so far.
#[derive(Debug, Default)]
pub(super) struct PayloadLimits {
    bytes: Cell<usize>,
    files: Cell<usize>,
}

impl PayloadLimits {
    /// Counts a file, unless it is one too many.
    pub(super) fn take(&self, path: &str, bytes: usize) -> Result<(), ConfigError> {
        let (bytes, files) = (self.bytes.get().saturating_add(bytes), self.files.get() + 1);
        if bytes > MOST_BYTES {
            return Err(PayloadError::TooLarge { path: path.to_owned(), limit: MOST_BYTES }.into());
        }
        if files > MOST_FILES {
            let path = path.to_owned();
            return Err(PayloadError::TooManyFiles { path, limit: MOST_FILES }.into());
        }
        self.bytes.set(bytes);
        self.files.set(files);
        Ok(())
    }
}
