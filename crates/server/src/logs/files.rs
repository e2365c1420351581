//! A container's log files: `0.log`, `1.log` and so on, one for each time it was started.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use oarsman_core::log_rotation::rotated_in_order;
use oarsman_host::beneath::RootDirectory;

/// No kubelet leaves as many files in a container's log directory: a container that fills it does not fill the agent's memory.
const MAX_ENTRIES: usize = 65_536;

/// The numbers of the starts that have left a log; none when the container was never started.
///
/// # Errors
/// When the directory is there and cannot be read.
pub fn attempts(directory: &Path) -> io::Result<BTreeSet<u32>> {
    let opened = match open_directory(directory) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    numbers(&opened, MAX_ENTRIES)
}

fn numbers(directory: &RootDirectory, limit: usize) -> io::Result<BTreeSet<u32>> {
    let (mut numbers, mut seen) = (BTreeSet::new(), 0);
    directory.each_name(&mut |name| {
        numbers.extend(name.to_str().and_then(number));
        seen += 1;
        seen <= limit
    })?;
    if seen > limit {
        return Err(io::Error::other(format!("there are more than {limit} files in it")));
    }
    Ok(numbers)
}

/// The file name of the log of a start.
pub fn name(attempt: u32) -> String {
    format!("{attempt}.log")
}

/// The start that a log belongs to; none for `+1.log`, `01.log` and numbers that no start can have.
fn number(file: &str) -> Option<u32> {
    let number = file.strip_suffix(".log")?.parse().ok()?;
    (name(number) == file).then_some(number)
}

/// One file for each rotation of the log of a start, oldest first.
pub(super) fn rotated(directory: &Path, attempt: u32) -> io::Result<Vec<String>> {
    let (mut names, log) = (Vec::new(), name(attempt));
    open_directory(directory)?.each_name(&mut |name| {
        names.extend(name.to_str().filter(|name| name.starts_with(&log)).map(str::to_owned));
        names.len() < MAX_ENTRIES
    })?;
    Ok(rotated_in_order(&log, &names))
}

/// Opens a file in a container's log directory, which must be a regular one and not lie behind a link.
pub(super) fn open_named(directory: &Path, name: &str) -> io::Result<File> {
    open_directory(directory)?.open_file(Path::new(name))
}

/// Opens the log of a start, which must be a regular file and not lie behind a link.
pub(super) fn open(directory: &Path, attempt: u32) -> io::Result<File> {
    open_directory(directory)?.open_file(Path::new(&name(attempt)))
}

/// A container's log directory is `<pod logs>/<pod>/<container>`. The pod logs directory is the node's own; the two levels below it
/// may be replaced by links by whatever has it mounted.
pub(crate) fn open_directory(directory: &Path) -> io::Result<RootDirectory> {
    let root = directory.ancestors().nth(2).filter(|root| !root.as_os_str().is_empty());
    let root = root.unwrap_or(Path::new("."));
    let below = directory.strip_prefix(root).unwrap_or(directory);
    RootDirectory::open(root)?.open_directory(below)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn logs_are_known_by_their_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let names =
            ["0.log", "10.log", "9.log", "9.log.20260101-000000", "x.log", "4294967295.log"];
        for name in names.into_iter().chain(["4294967296.log", "+7.log", "07.log", "-1.log"]) {
            fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(attempts(directory.path()).unwrap(), BTreeSet::from([0, 9, 10, u32::MAX]));
        assert_eq!(attempts(&directory.path().join("none")).unwrap(), BTreeSet::new());
    }

    #[test]
    fn a_directory_with_too_many_files_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        (0..3).for_each(|number| fs::write(directory.path().join(name(number)), "").unwrap());
        let opened = open_directory(directory.path()).unwrap();
        assert_eq!(numbers(&opened, 3).unwrap(), BTreeSet::from([0, 1, 2]));
        let refused = numbers(&opened, 2).unwrap_err();
        assert!(refused.to_string().contains("more than 2 files"), "{refused}");
    }
}
