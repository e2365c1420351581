//! Answers requests.

use std::io;
use std::os::fd::OwnedFd;

use libcontainer::container::Container;
use oarsman_clock::Clock;
use oarsman_host::processes::signal_of;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};
use serde::Deserialize;
use serde_json::Value;

use super::attach::AttachedStream;
use super::console::StepConsole;
use super::container::HeldContainer;
use super::output::ContainerOutput;
use super::reap::signal_process;
use super::stdin::ContainerStdin;
use super::steps::{HelperStreams, StepWork};
use super::{ReplyAddress, ShimServer};
use crate::file_io::write_json;
use crate::log::{LogFile, OutputStream};
use crate::protocol::{
    ContainerPhase, CreateRequest, RefusalKind, ShimReply, ShimRequest, StreamSet,
};

impl ShimServer {
    pub(super) fn reply(&mut self, to: ReplyAddress, reply: ShimReply) {
        if let Some(connection) = self.connections.get_mut(&to.connection) {
            connection.reply(to.number, reply, None);
        }
    }

    pub(super) fn refuse(&mut self, to: ReplyAddress, kind: RefusalKind, message: String) {
        self.reply(to, ShimReply::Refused { kind, message });
    }

    pub(super) fn refuse_unknown(&mut self, to: ReplyAddress, id: &str) {
        self.refuse(to, RefusalKind::NotFound, format!("there is no container {id}"));
    }

    fn finish(&mut self, to: ReplyAddress, result: io::Result<()>, what: &str) {
        match result {
            Ok(()) => self.reply(to, ShimReply::Done),
            Err(error) => self.refuse(to, RefusalKind::Failed, format!("cannot {what}: {error}")),
        }
    }

    pub(super) fn answer(&mut self, to: ReplyAddress, request: Value) {
        let request = match ShimRequest::deserialize(&request) {
            Ok(request) => request,
            Err(error) => {
                let message = format!("this shim does not understand the request: {error}");
                return self.refuse(to, RefusalKind::UnknownRequest, message);
            }
        };
        let expected = match &request {
            ShimRequest::Exec(exec) => exec.streams.count(),
            ShimRequest::Attach { streams, .. } => streams.count(),
            _ => 0,
        };
        let connection = self.connections.get_mut(&to.connection);
        let Some(descriptors) =
            connection.and_then(|connection| connection.take_descriptors(expected))
        else {
            let message = format!("the request needs {expected} descriptors beside it");
            return self.refuse(to, RefusalKind::Invalid, message);
        };
        match request {
            ShimRequest::List => {
                let containers = self.containers.values().map(HeldContainer::report).collect();
                self.reply(to, ShimReply::Containers { containers });
            }
            ShimRequest::Create(request) => self.create(to, *request),
            ShimRequest::Start { container } => self.start(to, &container),
            ShimRequest::Kill { container, signal, all } => self.kill(to, &container, signal, all),
            ShimRequest::Wait { container } => self.wait_for(to, &container),
            ShimRequest::Delete { container } => self.delete(to, &container),
            ShimRequest::Exec(request) => self.exec(to, *request, descriptors),
            ShimRequest::Attach { container, streams } => {
                self.attach(to, &container, streams, descriptors)
            }
            ShimRequest::Resize { container, width, height } => {
                self.resize(to, &container, width, height)
            }
            ShimRequest::ReopenLog { container } => self.reopen_log(to, &container),
            ShimRequest::Update { container, resources } => self.update(to, &container, &resources),
            ShimRequest::PidNamespace => self.pid_namespace(to),
            ShimRequest::Events => {
                self.subscribers.push(to);
                self.reply(to, ShimReply::Done);
            }
            ShimRequest::Shutdown => self.shut_down(to),
        }
    }

    fn create(&mut self, to: ReplyAddress, request: CreateRequest) {
        let id = request.container.clone();
        if self.containers.contains_key(&id) {
            return self.refuse(
                to,
                RefusalKind::Exists,
                format!("there is a container {id} already"),
            );
        }
        match self.prepare(&request) {
            Ok((container, streams, console)) => {
                self.containers.insert(id.clone(), container);
                let work = StepWork::Create(to);
                if let Err(error) = self.start_step("create", "create", &id, work, streams, console)
                {
                    let message = format!("cannot start the helper: {error}");
                    let reply = ShimReply::Refused { kind: RefusalKind::Failed, message };
                    self.start_delete(vec![to], &id, reply);
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
        let log = request.log.as_deref().map(LogFile::open).transpose()?;
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
            phase: ContainerPhase::Creating,
            pid: None,
            created_at: None,
            started_at: None,
            exit: None,
            exit_told: false,
            outputs,
            log,
            log_retry: None,
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

    fn start(&mut self, to: ReplyAddress, id: &str) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        if container.phase != ContainerPhase::Created {
            let message =
                format!("container {id} is not waiting for its start: it is {:?}", container.phase);
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        let started_at = self.clock.wall();
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

    fn kill(&mut self, to: ReplyAddress, id: &str, signal: i32, all: bool) {
        let Some(container) = self.containers.get(id) else {
            return self.refuse_unknown(to, id);
        };
        let Some(signal) = signal_of(signal) else {
            return self.refuse(to, RefusalKind::Invalid, format!("{signal} is no signal"));
        };
        match container.pid.filter(|_| container.exit.is_none()) {
            Some(_) if all => {
                self.cgroups.signal_container(&container.cgroup, |pid| signal_process(pid, signal))
            }
            Some(pid) => signal_process(pid, signal),
            None => {
                let message = format!("container {id} has no process");
                return self.refuse(to, RefusalKind::WrongState, message);
            }
        }
        self.reply(to, ShimReply::Done);
    }

    fn wait_for(&mut self, to: ReplyAddress, id: &str) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        match container.exit.clone().filter(|_| container.exit_told) {
            Some(exit) => self.reply(to, ShimReply::Exited { container: id.to_owned(), exit }),
            None => container.waiters.push(to),
        }
    }

    fn delete(&mut self, to: ReplyAddress, id: &str) {
        match self.containers.get(id) {
            None => self.refuse_unknown(to, id),
            Some(container)
                if container.phase == ContainerPhase::Creating || container.deleting =>
            {
                let message = format!("container {id} is being created or deleted; ask again");
                self.refuse(to, RefusalKind::WrongState, message);
            }
            Some(_) => self.start_delete(vec![to], id, ShimReply::Done),
        }
    }

    fn attach(
        &mut self,
        to: ReplyAddress,
        id: &str,
        streams: StreamSet,
        descriptors: Vec<OwnedFd>,
    ) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        if container.exit.is_some() {
            let message = format!("container {id} has ended, so nothing can be attached to it");
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        if streams.stdin && !container.stdin.is_open() {
            let message = format!("container {id} has no open stdin to attach to");
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        let result = container.attach(streams, descriptors);
        self.finish(to, result, &format!("attach to container {id}"));
    }

    fn resize(&mut self, to: ReplyAddress, id: &str, width: u16, height: u16) {
        let Some(container) = self.containers.get(id) else {
            return self.refuse_unknown(to, id);
        };
        let Some(terminal) = &container.terminal else {
            let message = format!("container {id} has no terminal");
            return self.refuse(to, RefusalKind::WrongState, message);
        };
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        let result = tcsetwinsize(terminal, size).map_err(io::Error::from);
        self.finish(to, result, &format!("resize the terminal of container {id}"));
    }

    fn reopen_log(&mut self, to: ReplyAddress, id: &str) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        let result = container.log.as_mut().map_or(Ok(()), LogFile::reopen);
        self.finish(to, result, &format!("reopen the log of container {id}"));
    }

    fn shut_down(&mut self, to: ReplyAddress) {
        if !self.containers.is_empty() || !self.steps.is_empty() {
            let message = format!(
                "the shim still has {} containers; delete them first",
                self.containers.len()
            );
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        if let Some(init) = self.pod_init.take() {
            signal_process(init.id(), Signal::KILL);
        }
        self.ending = true;
        self.reply(to, ShimReply::Done);
    }
}

impl HeldContainer {
    fn attach(&mut self, streams: StreamSet, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let mut given = descriptors.into_iter();
        if streams.stdin
            && let Some(source) = given.next()
        {
            self.stdin.attach(source)?;
        }
        let outputs =
            [(streams.stdout, OutputStream::Stdout), (streams.stderr, OutputStream::Stderr)];
        for (_, stream) in outputs.into_iter().filter(|(wanted, _)| *wanted) {
            if let Some(descriptor) = given.next() {
                self.attached.push(AttachedStream::new(stream, descriptor)?);
            }
        }
        Ok(())
    }
}

fn make_pipes(
    stdin: &mut ContainerStdin,
    wanted: bool,
) -> io::Result<(Vec<ContainerOutput>, HelperStreams)> {
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
        ContainerOutput::new(OutputStream::Stdout, stdout_reader)?,
        ContainerOutput::new(OutputStream::Stderr, stderr_reader)?,
    ];
    Ok((outputs, HelperStreams([input, Some(stdout), Some(stderr)])))
}
