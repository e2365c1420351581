//! Creates, starts, signals and deletes containers.

use std::io;

use jiff::Timestamp;
use libcontainer::container::Container;
use oarsman_clock::Clock;
use oarsman_host::processes::signal_of;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use super::console::StepConsole;
use super::container::HeldContainer;
use super::output::OutputPump;
use super::reap::signal_process;
use super::stdin::ContainerStdin;
use super::steps::{HelperStreams, StepWork};
use super::{ReplyAddress, ShimServer};
use crate::file_io::write_json;
use crate::log::{CriLogFile, LogWriter, WrittenStream};
use crate::protocol::{ContainerPhase, CreateRequest, RefusalKind, ShimReply};

impl ShimServer {
    pub(super) fn create(&mut self, to: ReplyAddress, request: &CreateRequest) {
        let id = request.container.clone();
        if self.containers.contains_key(&id) {
            return self.refuse(
                to,
                RefusalKind::Exists,
                format!("there is a container {id} already"),
            );
        }
        match self.prepare(request) {
            Ok((container, streams, console)) => {
                self.containers.insert(id.clone(), container);
                let work = StepWork::Create(to);
                if let Err(error) = self.start_step("create", "create", &id, work, streams, console)
                {
                    let message = format!("cannot start the helper: {error}");
                    let reply = ShimReply::Refused { kind: RefusalKind::Failed, message };
                    self.start_delete(to, &id, reply);
                }
            }
            Err(error) => {
                if let Some(directory) = self.directory.container(&id) {
                    // What has failed to be written may not be there.
                    std::fs::remove_dir_all(directory.path()).unwrap_or_default();
                }
                self.refuse(
                    to,
                    RefusalKind::Invalid,
                    format!("cannot create container {id}: {error}"),
                );
            }
        }
    }

    fn prepare(
        &self,
        request: &CreateRequest,
    ) -> io::Result<(HeldContainer, HelperStreams, Option<StepConsole>)> {
        let invalid =
            |message: &str| io::Error::new(io::ErrorKind::InvalidInput, message.to_owned());
        let directory = self.directory.container(&request.container);
        let directory = directory.ok_or_else(|| invalid("its id is not a plain name"))?;
        let linux = request.spec.linux().as_ref();
        let cgroup = linux.and_then(|linux| linux.cgroups_path().clone());
        let cgroup = cgroup.filter(|path| path.is_absolute() && path.parent().is_some());
        let cgroup =
            cgroup.ok_or_else(|| invalid("linux.cgroupsPath has to be an absolute path"))?;
        std::fs::create_dir_all(directory.path())?;
        write_json(&directory.request(), request)?;
        let log = request.log.clone().map(|path| {
            let open = move || CriLogFile::open(&path);
            LogWriter::start(open, self.log_notify.try_clone()?, self.now())
        });
        let log = log.transpose()?;
        let process = request.spec.process().as_ref();
        let is_terminal = process.is_some_and(|process| process.terminal() == Some(true));
        let mut stdin = ContainerStdin::new(request.stdin, request.stdin_once);
        let (outputs, streams, console) = if is_terminal {
            let console = StepConsole::listen(&directory, "create")?;
            (Vec::new(), HelperStreams([None, None, None]), Some(console))
        } else {
            let (outputs, streams) = make_pipes(&mut stdin, request.stdin)?;
            (outputs, streams, None)
        };
        let container = HeldContainer {
            id: request.container.clone(),
            directory,
            cgroup,
            has_oci_runtime: request.oci_runtime.is_some(),
            phase: ContainerPhase::Creating,
            pid: None,
            created_at: None,
            started_at: None,
            exit: None,
            exit_told: false,
            outputs,
            log,
            unopened: None,
            reopening: Vec::new(),
            is_held_back: false,
            stdin,
            terminal: None,
            attached: Vec::new(),
            has_broken_clients: false,
            waiters: Vec::new(),
            drain_until: None,
            deleting: false,
        };
        container.save();
        Ok((container, streams, console))
    }

    pub(super) fn start(&mut self, to: ReplyAddress, id: &str) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        if container.phase != ContainerPhase::Created {
            let message =
                format!("container {id} is not waiting for its start: it is {:?}", container.phase);
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        let started_at = self.clock.wall();
        if container.has_oci_runtime {
            return self.start_by_helper(to, id, started_at);
        }
        let result = Container::load(self.directory.libcontainer().join(id))
            .and_then(|mut held| held.start());
        // It changes our directory, and not back when it fails.
        std::env::set_current_dir("/").unwrap_or_default();
        match result {
            Ok(()) => {
                container.phase = ContainerPhase::Running;
                container.started_at = Some(started_at);
                container.save();
                self.reply(to, ShimReply::Done);
            }
            Err(error) => {
                self.refuse(
                    to,
                    RefusalKind::Failed,
                    format!("cannot start container {id}: {error}"),
                );
            }
        }
    }

    /// Its program takes a while, in which others are served.
    fn start_by_helper(&mut self, to: ReplyAddress, id: &str, at: Timestamp) {
        let streams = HelperStreams([None, None, None]);
        let work = StepWork::Start(to, at);
        if let Err(error) = self.start_step("start", "start", id, work, streams, None) {
            let message = format!("cannot start the helper: {error}");
            self.refuse(to, RefusalKind::Failed, message);
        }
    }

    /// The program of a container runs, or has ended already.
    pub(super) fn started(&mut self, to: ReplyAddress, id: &str, at: Timestamp) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        container.started_at = Some(at);
        if container.exit.is_none() {
            container.phase = ContainerPhase::Running;
        }
        container.save();
        self.reply(to, ShimReply::Done);
    }

    pub(super) fn kill(&mut self, to: ReplyAddress, id: &str, signal: i32, all: bool) {
        let Some(container) = self.containers.get(id) else {
            return self.refuse_unknown(to, id);
        };
        let Some(signal) = signal_of(signal) else {
            return self.refuse(to, RefusalKind::Invalid, format!("{signal} is no signal"));
        };
        match container.pid.filter(|_| container.exit.is_none()) {
            Some(first) if all => {
                if signal == Signal::KILL {
                    self.cgroups.kill_container(&container.cgroup);
                }
                let mut has_first = false;
                self.cgroups.signal_container(&container.cgroup, |pid| {
                    has_first |= pid == first;
                    signal_process(pid, signal);
                });
                // A privileged container may have left its group.
                if !has_first {
                    signal_process(first, signal);
                }
            }
            Some(pid) => signal_process(pid, signal),
            None => {
                let message = format!("container {id} has no process");
                return self.refuse(to, RefusalKind::WrongState, message);
            }
        }
        self.reply(to, ShimReply::Done);
    }

    pub(super) fn wait_for(&mut self, to: ReplyAddress, id: &str) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        match container.exit.clone().filter(|_| container.exit_told) {
            Some(exit) => self.reply(to, ShimReply::Exited { container: id.to_owned(), exit }),
            None => container.waiters.push(to),
        }
    }

    pub(super) fn delete(&mut self, to: ReplyAddress, id: &str) {
        match self.containers.get(id) {
            None => self.refuse_unknown(to, id),
            Some(container)
                if container.phase == ContainerPhase::Creating || container.deleting =>
            {
                let message = format!("container {id} is being created or deleted; ask again");
                self.refuse(to, RefusalKind::WrongState, message);
            }
            Some(_) => self.start_delete(to, id, ShimReply::Done),
        }
    }
}

fn make_pipes(
    stdin: &mut ContainerStdin,
    wanted: bool,
) -> io::Result<(Vec<OutputPump>, HelperStreams)> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let (stdout_reader, stdout) = pipe()?;
    let (stderr_reader, stderr) = pipe()?;
    let input = if wanted {
        let (reader, writer) = pipe()?;
        stdin.connect(writer)?;
        Some(reader)
    } else {
        None
    };
    let outputs = vec![
        OutputPump::new(WrittenStream::Stdout, stdout_reader)?,
        OutputPump::new(WrittenStream::Stderr, stderr_reader)?,
    ];
    Ok((outputs, HelperStreams([input, Some(stdout), Some(stderr)])))
}
