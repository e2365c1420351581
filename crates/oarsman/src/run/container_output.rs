//! Prints containers' logs on the terminal of `oarsman run`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use oarsman_core::cri_spec::log_directory;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{NodeReport, PodReport};
use oarsman_server::logs::{LogFollower, LogPrinter, PrintOptions, ReadProgress};

use super::pod_lines::short_name;
use crate::control_sequences::strip_control_sequences;

#[cfg(test)]
mod tests;

/// Pieces of a container's log that are read at a time: 256 KiB. A terminal may be slower than a container.
const MAX_PIECES: usize = 4;
/// A longer line is printed as several.
const MAX_LINE_BYTES: usize = 256 * 1024;

/// The logs of all containers.
#[derive(Default)]
pub(super) struct ContainerOutput {
    /// By their directories.
    logs: BTreeMap<PathBuf, ContainerLogTail>,
}

/// The log of one container.
struct ContainerLogTail {
    file: Option<LogFollower>,
    printer: LogPrinter,
    /// Stands before every line.
    prefix: String,
    /// What is not a whole line yet, on stdout and on stderr.
    rest: [Vec<u8>; 2],
    state: TailState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TailState {
    /// There is more to be read at once.
    Behind,
    CaughtUp,
    /// It could not be read, and is not read any more.
    Failed,
}

impl ContainerOutput {
    /// A bounded part of the lines that were written since the last call.
    pub(super) fn read(&mut self, node: &NodeReport) -> Vec<String> {
        for pod in &node.pods {
            self.track(Path::new(&node.pod_logs), pod);
        }
        let mut lines = Vec::new();
        for (directory, log) in &mut self.logs {
            log.read(directory, &mut lines);
        }
        // The logs of a pod that was replaced are gone.
        self.logs.retain(|directory, log| !log.is_done() || directory.exists());
        lines
    }

    /// Whether there is more to be read at once.
    pub(super) fn is_behind(&self) -> bool {
        self.logs.values().any(|log| log.state == TailState::Behind)
    }

    fn track(&mut self, logs: &Path, pod: &PodReport) {
        let containers = pod.pod.all_containers();
        let several = containers.len() > 1;
        let directory = log_directory(logs, &pod.pod);
        for container in &containers {
            let (pod, name) = (short_name(pod), &container.spec.name);
            let who = if several { format!("{pod}/{name}") } else { pod };
            let log = || ContainerLogTail {
                file: None,
                printer: LogPrinter::new(PrintOptions::default()),
                prefix: format!("{who} | "),
                rest: Default::default(),
                state: TailState::CaughtUp,
            };
            self.logs.entry(directory.join(name)).or_insert_with(log);
        }
    }
}

impl ContainerLogTail {
    /// A log that cannot be read is said once, and keeps no other from being read.
    fn read(&mut self, directory: &Path, lines: &mut Vec<String>) {
        if self.state == TailState::Failed {
            return;
        }
        let read = self.read_pieces(directory);
        for stream in [0, 1] {
            self.move_lines(stream, lines);
        }
        self.state = match read {
            Ok(ReadProgress::More) => TailState::Behind,
            Ok(ReadProgress::CaughtUp) => TailState::CaughtUp,
            Err(error) => {
                let said = format!("the log cannot be read and is left out: {error}");
                lines.push(format!("{}{}", self.prefix, strip_control_sequences(&said)));
                TailState::Failed
            }
        };
    }

    fn read_pieces(&mut self, directory: &Path) -> io::Result<ReadProgress> {
        if self.file.is_none() {
            self.file = LogFollower::at_first(directory)?;
        }
        let Some(file) = &mut self.file else { return Ok(ReadProgress::CaughtUp) };
        let [out, err] = &mut self.rest;
        for _ in 0..MAX_PIECES {
            let read = file.read_next(&mut |line| self.printer.print(line, out, err))?;
            if read == ReadProgress::CaughtUp {
                return Ok(read);
            }
        }
        Ok(ReadProgress::More)
    }

    /// Moves whole lines to `lines`, and the beginning of one that has become too long.
    fn move_lines(&mut self, stream: usize, lines: &mut Vec<String>) {
        let bytes = &mut self.rest[stream];
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let end = if bytes.len() - end >= MAX_LINE_BYTES { bytes.len() } else { end };
        let rest = bytes.split_off(end);
        let moved = std::mem::replace(bytes, rest);
        let line = |line: &str| format!("{}{}", self.prefix, strip_control_sequences(line));
        lines.extend(String::from_utf8_lossy(&moved).lines().map(line));
    }

    fn is_done(&self) -> bool {
        self.state == TailState::Failed
            || (self.file.is_some() && self.state == TailState::CaughtUp)
    }
}
