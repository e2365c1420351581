//! The search for where the last lines of a log begin: from its end backwards, and piece by piece, so that a long log keeps no thread.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::line::MAX_LINE_BYTES;

/// Read in one step.
const STEP_BYTES: u64 = 64 * 1024;

/// Where a search is.
#[derive(Debug)]
pub(super) struct TailSearch {
    end: u64,
    /// What lies before is still to be searched.
    position: u64,
    /// Where the first line that is known begins.
    found: u64,
    /// Lines that are still to be found.
    left: usize,
    block: Vec<u8>,
}

impl TailSearch {
    /// Begins at the end of a file that is there now.
    pub(super) fn new(file: &mut File, lines: usize) -> io::Result<Self> {
        let end = file.seek(SeekFrom::End(0))?;
        Ok(Self { end, position: end, found: end, left: lines, block: Vec::new() })
    }

    /// Searches a bounded piece more. When it returns true, the file is at the place.
    pub(super) fn step(&mut self, file: &mut File) -> io::Result<bool> {
        if let Some(place) = self.search(file)? {
            file.seek(SeekFrom::Start(place))?;
            return Ok(true);
        }
        Ok(false)
    }

    fn search(&mut self, file: &mut File) -> io::Result<Option<u64>> {
        if self.left == 0 {
            return Ok(Some(self.end));
        }
        // No line is as long. What comes before, such as the hole of a sparse file, is not worth the search.
        let is_endless = self.found - self.position > MAX_LINE_BYTES;
        if self.position == 0 || is_endless {
            return Ok(Some(self.position));
        }
        let begin = self.position.saturating_sub(STEP_BYTES);
        file.seek(SeekFrom::Start(begin))?;
        self.block.clear();
        file.take(self.position - begin).read_to_end(&mut self.block)?;
        self.position = begin;
        Ok(self.search_block(begin))
    }

    fn search_block(&mut self, begin: u64) -> Option<u64> {
        let newlines = self.block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        for (place, _) in newlines {
            let after = begin + u64::try_from(place).unwrap_or_default() + 1;
            // The end of the last line begins no other.
            if after == self.end {
                continue;
            }
            self.found = after;
            self.left -= 1;
            if self.left == 0 {
                return Some(after);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file_with(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    /// How many steps it takes to get there.
    fn search(file: &mut File, lines: usize) -> usize {
        let mut search = TailSearch::new(file, lines).unwrap();
        (1..10_000).find(|_| search.step(file).unwrap()).unwrap()
    }

    #[test]
    fn the_last_lines_of_a_file_are_found_however_long_they_are() {
        let long = "x".repeat(100_000);
        let text = format!("one\ntwo\n{long}\nfour\n");
        for (ended, text) in [(true, text.clone()), (false, text.trim_end().to_owned())] {
            let all: Vec<&str> = text.lines().collect();
            for count in 0..6_usize {
                let mut file = file_with(&text);
                search(&mut file, count);
                let rest = io::read_to_string(file).unwrap();
                let want = &all[all.len().saturating_sub(count)..];
                assert_eq!(rest.lines().collect::<Vec<_>>(), want, "{count} {ended}");
            }
        }
    }

    #[test]
    fn the_greatest_number_of_lines_of_a_sparse_log_is_found_in_few_small_steps() {
        let mut file = file_with("first\n");
        let hole = 10 << 30;
        file.seek(SeekFrom::Start(hole)).unwrap();
        file.write_all(b"\none\ntwo\n").unwrap();
        assert!(search(&mut file, 2) <= 2, "the last lines of 10 GiB");
        let steps = search(&mut file, usize::MAX);
        assert!(steps < 10, "{steps}");
        let place = file.stream_position().unwrap();
        assert!(place < hole && hole - place < 512 * 1024, "{place}");
    }
}
