//! A container's log files: `0.log`, `1.log` and so on, one for each time it was started.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read at a time.
const BLOCK: u64 = 64 * 1024;

/// The numbers of the starts that have left a log; none when the container was never started.
///
/// # Errors
/// When the directory is there and cannot be read.
pub fn attempts(directory: &Path) -> io::Result<BTreeSet<u32>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    let mut attempts = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        let number: Option<u32> =
            name.to_str().and_then(|name| name.strip_suffix(".log")?.parse().ok());
        attempts.extend(number);
    }
    Ok(attempts)
}

/// The file name of the log of a start.
pub fn name(attempt: u32) -> String {
    format!("{attempt}.log")
}

/// Seeks to where the last so many lines of a file begin.
pub(crate) fn seek_to_last(file: &mut File, lines: usize) -> io::Result<()> {
    let end = file.seek(SeekFrom::End(0))?;
    let (mut position, mut left) = (end, lines);
    let mut block = Vec::new();
    while position > 0 && lines > 0 {
        let begin = position.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(begin))?;
        block.clear();
        file.by_ref().take(position - begin).read_to_end(&mut block)?;
        for (place, _) in block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let after = begin + u64::try_from(place).unwrap_or_default() + 1;
            // The newline at the end of the file begins no line.
            if after == end {
                continue;
            }
            left -= 1;
            if left == 0 {
                file.seek(SeekFrom::Start(after))?;
                return Ok(());
            }
        }
        position = begin;
    }
    file.seek(SeekFrom::Start(if lines == 0 { end } else { 0 }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_file_are_found_however_long_they_are() {
        let long = "x".repeat(100_000);
        let text = format!("one\ntwo\n{long}\nfour\n");
        for (ended, text) in [(true, text.clone()), (false, text.trim_end().to_owned())] {
            let all: Vec<&str> = text.lines().collect();
            for count in 0..6_usize {
                let mut file = tempfile::tempfile().unwrap();
                io::Write::write_all(&mut file, text.as_bytes()).unwrap();
                seek_to_last(&mut file, count).unwrap();
                let rest = io::read_to_string(file).unwrap();
                let want = &all[all.len().saturating_sub(count)..];
                assert_eq!(rest.lines().collect::<Vec<_>>(), want, "{count} {ended}");
            }
        }
    }

    #[test]
    fn logs_are_known_by_their_numbers() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["0.log", "10.log", "9.log", "9.log.20260101-000000", "x.log"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(attempts(directory.path()).unwrap(), BTreeSet::from([0, 9, 10]));
        assert_eq!(attempts(&directory.path().join("none")).unwrap(), BTreeSet::new());
    }
}
