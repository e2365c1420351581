//! Prints containers' logs on the terminal of `oarsman run`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use oarsman_core::cri_spec::log_directory;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{NodeReport, PodReport};
use oarsman_server::logs::{LogFollower, LogPrinter, PrintOptions};

use super::pod_lines::short_name;

#[cfg(test)]
mod tests;

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
    /// What is not a whole line yet, on stdout and on stderr.
    rest: [Vec<u8>; 2],
}

impl ContainerOutput {
    /// The lines that were written since the last call.
    pub(super) fn read(&mut self, node: &NodeReport) -> io::Result<Vec<String>> {
        for pod in &node.pods {
            self.track(Path::new(&node.pod_logs), pod);
        }
        let mut lines = Vec::new();
        for (directory, log) in &mut self.logs {
            log.read(directory, &mut lines)?;
        }
        // The logs of a pod that was replaced are gone.
        self.logs.retain(|directory, log| log.file.is_none() || directory.exists());
        Ok(lines)
    }

    fn track(&mut self, logs: &Path, pod: &PodReport) {
        let containers = pod.pod.all_containers();
        let several = containers.len() > 1;
        let directory = log_directory(logs, &pod.pod);
        for container in &containers {
            let (pod, name) = (short_name(pod), &container.spec.name);
            let who = if several { format!("{pod}/{name}") } else { pod };
            let style =
                PrintOptions { prefix: Some(format!("{who} | ")), ..PrintOptions::default() };
            let log = || ContainerLogTail {
                file: None,
                printer: LogPrinter::new(style),
                rest: Default::default(),
            };
            self.logs.entry(directory.join(name)).or_insert_with(log);
        }
    }
}

impl ContainerLogTail {
    fn read(&mut self, directory: &Path, lines: &mut Vec<String>) -> io::Result<()> {
        if self.file.is_none() {
            self.file = LogFollower::at_first(directory)?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let [mut out, mut err] = std::mem::take(&mut self.rest);
        file.read(&mut |line| self.printer.print(line, &mut out, &mut err))?;
        self.rest = [out, err].map(|printed| whole_lines(printed, lines));
        Ok(())
    }
}

/// Moves whole lines to `lines`, and returns the unfinished rest.
fn whole_lines(mut bytes: Vec<u8>, lines: &mut Vec<String>) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let rest = bytes.split_off(end);
    lines.extend(String::from_utf8_lossy(&bytes).lines().map(strip_control_sequences));
    rest
}

/// Removes what could control the terminal, except for colours.
fn strip_control_sequences(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        kept.push_str(&rest[..at]);
        let colour = rest[at..].strip_prefix("\x1b[").and_then(|after| {
            let end = after.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
            after[end..].starts_with('m').then_some(end)
        });
        let length = colour.map_or(1, |end| "\x1b[".len() + end + 1);
        if colour.is_some() {
            kept.push_str(&rest[at..at + length]);
        }
        rest = &rest[at + length..];
    }
    kept.push_str(rest);
    kept.retain(|letter| letter == '\t' || letter == '\x1b' || !letter.is_control());
    kept
}
