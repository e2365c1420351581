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
use super::{ContainerCgroups, ReplyAddress, Waited};
use crate::directory::{ContainerDirectory, ShimDirectory};
use crate::file_io::write_json;
use crate::helper;
use crate::log::{LogWriter, WrittenStream};
use crate::protocol::{ContainerPhase, ContainerReport, ExitReport};

/// How long the output of a container that has ended is read if something else holds its pipes open.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a log may take to be opened.
const LOG_OPEN_TIMEOUT: Duration = Duration::from_secs(30);

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
    pub(super) log: Option<LogWriter>,
    /// The create whose container is there, and whose log is not open yet, with the end of its patience.
    pub(super) unopened: Option<(ReplyAddress, Mono)>,
    /// Who has asked for a new log file and waits for it.
    pub(super) reopening: Vec<ReplyAddress>,
    /// More of its output is read when its log has room again.
    pub(super) is_held_back: bool,
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
        let read = self.outputs.iter().enumerate().filter(|_| !self.is_held_back);
        for (at, output) in read {
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
        let unopened = self.unopened.map(|(_, until)| until);
        let stalled = self.log.as_ref().and_then(LogWriter::stalled_at);
        [drain, unopened, stalled].into_iter().flatten().min()
    }

    /// Has the log written as far as it goes, and finds out whether more can be read.
    pub(super) fn flush_log(&mut self, now: Mono) {
        let Some(log) = &mut self.log else { return };
        log.kick();
        self.is_held_back = !log.has_room(now);
    }

    /// Whether all of its output has been read and is in its log, as far as that goes.
    pub(super) fn has_settled(&mut self, now: Mono) -> bool {
        let is_read = self.outputs.is_empty() || self.drain_until.is_some_and(|at| at <= now);
        is_read && self.log.as_mut().is_none_or(|log| log.is_settled(now))
    }

    /// Waits for its log to be open from now on.
    pub(super) fn await_log(&mut self, to: ReplyAddress, now: Mono) {
        self.unopened = Some((to, now + LOG_OPEN_TIMEOUT));
    }

    pub(super) fn drop_broken_clients(&mut self) {
        if std::mem::take(&mut self.has_broken_clients) {
            self.attached.retain(|client| !client.is_broken());
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
            lost_log_bytes: self.log.as_ref().map_or(0, LogWriter::lost),
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

    /// Removes what is left of it if its processes have ended, so that nothing has to be waited for. False when a helper has to do that.
    pub(super) fn delete_at_once(&self, shim: &ShimDirectory, cgroups: &ContainerCgroups) -> bool {
        self.exit.is_some()
            && cgroups.remove_empty(&self.cgroup)
            && helper::remove_files(shim, &self.directory, &self.id).is_ok()
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
