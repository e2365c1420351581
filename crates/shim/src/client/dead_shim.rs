//! What is left of a shim that was killed.

use std::io;
use std::path::Path;

use jiff::Timestamp;

use crate::directory::ShimDirectory;
use crate::file_io::{read_json, write_json};
use crate::helper::kill_container;
use crate::protocol::{ContainerPhase, ContainerReport, ExitReport};
use crate::shim;

/// 128 and SIGKILL.
const KILLED: i32 = 137;

/// The last reports of a shim's containers, from their files: for when the shim is gone.
///
/// # Errors
/// When the directory cannot be read.
pub fn read_reports(directory: &ShimDirectory) -> io::Result<Vec<ContainerReport>> {
    let mut reports = Vec::new();
    for id in container_ids(&directory.containers())? {
        let report = directory.container(&id).map(|container| read_json(&container.report()));
        reports.extend(report.transpose()?.flatten());
    }
    reports.sort_by(|one: &ContainerReport, other| one.container.cmp(&other.container));
    Ok(reports)
}

/// Ends what a killed shim has left running, by its control groups, and writes down that those containers have ended in an unknown way. A shim
/// that lives is refused, and so is never disturbed. Blocks for a few seconds at most.
///
/// The containers' files stay, so that their logs and exits can be read; [`ShimDirectory::path`] is to be removed when that was done.
///
/// # Errors
/// When the shim lives, or a process cannot be killed.
pub fn clean_dead_shim(
    directory: &ShimDirectory,
    now: Timestamp,
) -> io::Result<Vec<ContainerReport>> {
    let _lock = shim::lock(directory)?;
    for id in container_ids(&directory.containers())? {
        let Some(container) = directory.container(&id) else { continue };
        kill_container(directory, &container, &id).map_err(io::Error::other)?;
        let Some(mut report) = read_json::<ContainerReport>(&container.report())? else { continue };
        if report.exit.is_none() {
            report.exit = Some(unknown_exit(now));
            report.phase = ContainerPhase::Exited;
            report.pid = None;
            write_json(&container.report(), &report)?;
        }
    }
    read_reports(directory)
}

/// Whether a shim holds the directory, as far as can be told; also one that does not answer.
pub fn is_shim_alive(directory: &ShimDirectory) -> bool {
    let locked = shim::lock(directory);
    locked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

fn unknown_exit(now: Timestamp) -> ExitReport {
    ExitReport {
        exit_code: KILLED,
        signal: None,
        finished_at: now,
        oom_killed: false,
        timed_out: false,
        unknown: true,
    }
}

fn container_ids(containers: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(containers) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}
