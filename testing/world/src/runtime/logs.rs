//! Writes container logs in the CRI format.

use std::path::Path;

use oarsman_cri::{CriError, ErrorCode, Result};

use super::state::FakeRuntimeState;
use crate::clock::WorldClock;
use crate::files::{FakeFile, FakeFiles};

/// Lines longer than this are cut.
const LONGEST_LINE: usize = 16 * 1024;

/// The stream of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputStream {
    Stdout,
    Stderr,
}

/// A log that is being written.
#[derive(Debug, Default)]
pub(super) struct LogWriter {
    /// None for a container without a log.
    file: Option<FakeFile>,
    /// Lines that have not ended yet, of stdout and stderr.
    unfinished: [Vec<u8>; 2],
}

impl LogWriter {
    /// Opens a log file, unless the path is empty.
    pub(super) fn open(files: &FakeFiles, path: &str) -> Self {
        // A path that cannot be opened gives a container without a log: nothing else depends on it.
        let file = Some(path).filter(|path| !path.is_empty());
        let file = file.and_then(|path| files.open(Path::new(path)).ok());
        Self { file, unfinished: Default::default() }
    }

    /// Writes the lines that end here or are too long; the rest is buffered.
    pub(super) fn write(&mut self, stream: OutputStream, bytes: &[u8], clock: &WorldClock) {
        let unfinished = &mut self.unfinished[stream.index()];
        unfinished.extend_from_slice(bytes);
        let mut entries = Vec::new();
        while let Some((line, tag, taken)) = next_entry(unfinished) {
            append_entry(&mut entries, stream, tag, line, clock);
            unfinished.drain(..taken);
        }
        self.append(&entries);
    }

    /// Writes the unfinished lines.
    pub(super) fn close(&mut self, clock: &WorldClock) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let rest = std::mem::take(&mut self.unfinished[stream.index()]);
            if !rest.is_empty() {
                let mut entry = Vec::new();
                append_entry(&mut entry, stream, "P", &rest, clock);
                self.append(&entry);
            }
        }
    }

    fn append(&self, entries: &[u8]) {
        if let Some(file) = &self.file {
            file.append(entries);
        }
    }
}

impl OutputStream {
    fn index(self) -> usize {
        match self {
            Self::Stdout => 0,
            Self::Stderr => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The next entry's text and tag, and how many bytes it takes off the input.
fn next_entry(input: &[u8]) -> Option<(&[u8], &'static str, usize)> {
    match input.iter().position(|byte| *byte == b'\n') {
        Some(end) if end <= LONGEST_LINE => Some((&input[..end], "F", end + 1)),
        _ if input.len() > LONGEST_LINE => Some((&input[..LONGEST_LINE], "P", LONGEST_LINE)),
        _ => None,
    }
}

fn append_entry(
    log: &mut Vec<u8>,
    stream: OutputStream,
    tag: &str,
    line: &[u8],
    clock: &WorldClock,
) {
    log.extend_from_slice(format!("{:.9} {} {tag} ", clock.wall(), stream.name()).as_bytes());
    log.extend_from_slice(line);
    log.push(b'\n');
}

impl FakeRuntimeState {
    /// Opens a new file of the same name, after the old one was moved away.
    pub(super) fn reopen_log(&mut self, id: &str) -> Result<()> {
        const CALL: &str = "ReopenContainerLog";
        let path = self.running(CALL, id)?.status().log_path;
        let file = self.files.open(Path::new(&path));
        let file =
            file.map_err(|e| CriError::new(CALL, ErrorCode::Unknown, e.to_string()).on(id))?;
        let running = self.containers.get_mut(id).and_then(|container| container.running_mut());
        if let Some(running) = running {
            running.log.file = Some(file);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lines_are_stamped_and_cut_and_a_rest_is_partial() {
        let (files, clock) = (FakeFiles::default(), WorldClock::start());
        let mut log = LogWriter::open(&files, "/log");
        log.write(OutputStream::Stdout, b"one\ntw", &clock);
        log.write(OutputStream::Stderr, b"oh\n", &clock);
        log.write(OutputStream::Stdout, b"o\n\nrest", &clock);
        log.write(OutputStream::Stderr, &[b'x'; LONGEST_LINE + 1], &clock);
        log.close(&clock);
        let log = String::from_utf8(files.read(Path::new("/log")).unwrap()).unwrap();
        let long = "x".repeat(LONGEST_LINE);
        let wanted = [
            "stdout F one",
            "stderr F oh",
            "stdout F two",
            "stdout F ",
            &format!("stderr P {long}"),
            "stdout P rest",
            "stderr P x",
        ];
        let time = "2027-01-01T00:00:00.000000000Z ";
        let lines: Vec<_> = log.lines().map(|line| line.strip_prefix(time).unwrap()).collect();
        assert_eq!(lines, wanted);
    }
}
