//! Small JSON files that are replaced as a whole.

use std::fs;
use std::io;
use std::path::Path;

use oarsman_host::files::{FileContents, read_regular};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::protocol::frame::MOST_FRAME;

/// Replaces a file: readers see the old or the new text, never a part. It is in memory, so that nothing is synced.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let text = serde_json::to_vec(value)?;
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, text)?;
    fs::rename(&new, path)
}

/// Reads such a file; none if there is none.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let limit = u64::try_from(MOST_FRAME).unwrap_or(u64::MAX);
    match read_regular(path, limit) {
        Ok(FileContents::Bytes(bytes)) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Ok(FileContents::TooLong | FileContents::Other(_)) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is not a file of ours", path.display()),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
