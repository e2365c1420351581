//! Small things about files: durable writes, bounded reads, removal.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use oarsman_host::tree::{RemoveTreeError, remove_tree};

use crate::error::{StoreError, failed};

/// Trees of more entries than this many calls remove are left to the next open.
const MAX_REMOVALS: usize = 1000;

/// Writes a new file and syncs it.
pub(crate) fn write_synced(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(failed("write", path))
}

/// Renames, so that the new name is there after a crash of the machine. What is renamed must be synced before.
pub(crate) fn rename_synced(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(failed("rename a file to", to))?;
    sync_parent(to)
}

/// Syncs the directory that a path is in.
pub(crate) fn sync_parent(path: &Path) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(path);
    let sync = || File::open(parent)?.sync_all();
    sync().map_err(failed("sync", parent))
}

/// All bytes of a reader that has no more than so many.
pub(crate) fn read_bounded(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Removes a tree, however large; one that is not there is no error.
pub(crate) fn remove_whole_tree(path: &Path) -> Result<(), StoreError> {
    for _ in 0..MAX_REMOVALS {
        match remove_tree(path) {
            Err(RemoveTreeError::Unfinished { .. }) => {}
            Ok(()) => return Ok(()),
            Err(error) => return Err(failed("remove", path)(io::Error::other(error))),
        }
    }
    Err(failed("remove", path)(io::Error::other("it holds too many files")))
}

/// The names in a directory of ours; other names than text are not ours.
pub(crate) fn names_in(directory: &Path) -> Result<Vec<String>, StoreError> {
    let list = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    };
    list().map_err(failed("list", directory))
}
