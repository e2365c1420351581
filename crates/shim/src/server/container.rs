//! One container that a shim holds.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use oarsman_core::time::Mono;
use rustix::event::PollFlags;

use super::attach::AttachedStream;
use super::output::OutputPump;
use super::stdin::ContainerStdin;
use super::{ReplyAddress, Waited};
use crate::directory::ContainerDirectory;
use crate::file_io::write_json;
use crate::log::{CriLogFile, WrittenStream};
use crate::protocol::{ContainerPhase, ContainerReport, ExitReport};

/// How long the output of a container that has ended is read if something else holds its pipes open.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a log is tried again that could not be written.
const LOG_RETRY: Duration = Duration::from_secs(1);

/// A container with its streams.
#[derive(Debug)]
pub(super) struct HeldContainer {
    pub(super) id: String,
    pub(super) directory: ContainerDirectory,
    pub(super) cgroup: PathBuf,
    pub(super) phase: ContainerPhase,
    pub(super) pid: Option<u32>,
    pub(super) created_at: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) exit: Option<ExitReport>,
    /// The exit is known to all who asked.
    pub(super) exit_told: bool,
    pub(super) outputs: Vec<OutputPump>,
    pub(super) log: Option<CriLogFile>,
    pub(super) log_retry: Option<Mono>,
    pub(super) stdin: ContainerStdin,
    pub(super) terminal: Option<OwnedFd>,
    pub(super) attached: Vec<AttachedStream>,
    /// Some of them are to be removed.
    pub(super) has_broken_clients: bool,
    pub(super) waiters: Vec<ReplyAddress>,
    pub(super) drain_until: Option<Mono>,
    /// A delete is under way.
    pub(super) deleting: bool,
}

impl HeldContainer {
    pub(super) fn add_waits<'a>(&'a self, add: &mut impl FnMut(Waited, BorrowedFd<'a>, PollFlags)) {
        for (at, output) in self.outputs.iter().enumerate() {
            add(Waited::Output(self.id.clone(), at), output.descriptor.as_fd(), PollFlags::IN);
        }
        for (at, stream) in self.attached.iter().enumerate() {
            // Without anything to write, a closed reader is still noticed.
            let flags = if stream.is_behind() { PollFlags::OUT } else { PollFlags::empty() };
            add(Waited::Attached(self.id.clone(), at), stream.descriptor.as_fd(), flags);
        }
        self.stdin.add_waits(&self.id, add);
    }

    /// When something has to be done for it.
    pub(super) fn deadline(&self) -> Option<Mono> {
        let drain = self.drain_until.filter(|_| !self.exit_told);
        [drain, self.log_retry].into_iter().flatten().min()
    }

    pub(super) fn flush_log(&mut self, now: Mono) {
        let Some(log) = &mut self.log else { return };
        log.flush();
        self.log_retry = log.is_behind().then(|| now + LOG_RETRY);
    }

    pub(super) fn drop_broken_clients(&mut self) {
        if std::mem::take(&mut self.has_broken_clients) {
            self.attached.retain(|client| !client.is_broken());
        }
    }

    pub(super) fn retry_log(&mut self, now: Mono) {
        if self.log_retry.is_some_and(|at| at <= now) {
            self.flush_log(now);
        }
    }

    pub(super) fn report(&self) -> ContainerReport {
        ContainerReport {
            container: self.id.clone(),
            phase: self.phase,
            pid: self.pid.filter(|_| self.exit.is_none()),
            created_at: self.created_at,
            started_at: self.started_at,
            exit: self.exit.clone(),
            lost_log_bytes: self.log.as_ref().map_or(0, CriLogFile::lost),
        }
    }

    /// The terminal that libcontainer has made is where the container's output comes from and its input goes to.
    pub(super) fn use_terminal(&mut self, terminal: OwnedFd) -> io::Result<()> {
        let (output, input) = (terminal.try_clone()?, terminal.try_clone()?);
        self.outputs.push(OutputPump::new(WrittenStream::Stdout, output)?);
        self.stdin.connect(input)?;
        self.terminal = Some(terminal);
        Ok(())
    }

    /// Writes the report to its file. A full memory file system is the only reason for it to fail, and the socket tells the same.
    /// While it is deleted the directory is the helper's alone.
    pub(super) fn save(&self) {
        if self.deleting {
            return;
        }
        write_json(&self.directory.report(), &self.report()).unwrap_or_default();
    }
}
