//! Reads and writes control files, and writes only what differs.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::CgroupError;
use super::values::ControlFileValue;

pub(super) fn read(path: &Path) -> Result<String, CgroupError> {
    let failed = |source| CgroupError::Read { path: path.to_owned(), source };
    fs::read_to_string(path).map_err(failed)
}

/// Never creates a file: only the kernel does.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CgroupError> {
    let failed =
        |source| CgroupError::Write { path: path.to_owned(), text: text.to_owned(), source };
    let mut file = OpenOptions::new().write(true).truncate(true).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// Writes the values that differ. A refused one is tried once more after the rest: a period may not be accepted until its quota has changed, and
/// the other way round.
pub(super) fn apply(directory: &Path, settings: &[ControlFileValue]) -> Result<(), CgroupError> {
    let refused: Vec<_> =
        settings.iter().filter(|setting| apply_one(directory, setting).is_err()).collect();
    refused.into_iter().try_for_each(|setting| apply_one(directory, setting))
}

fn apply_one(directory: &Path, setting: &ControlFileValue) -> Result<(), CgroupError> {
    let path = directory.join(&setting.file);
    if setting.is_met_by(&read(&path)?) {
        return Ok(());
    }
    write(&path, &setting.text)
}
