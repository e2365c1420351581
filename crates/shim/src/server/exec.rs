//! Further processes of containers.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oarsman_core::time::Mono;

use super::cgroups::{is_exec_gone, kill_exec, release_exec};
use super::console::StepConsole;
use super::steps::{HelperStreams, StepWork};
use super::{ReplyAddress, ShimServer};
use crate::directory::ContainerDirectory;
use crate::file_io::write_json;
use crate::helper::ExecStep;
use crate::protocol::{ContainerPhase, ExecRequest, ExitReport, RefusalKind, ShimReply};

/// How often what is left of an exec that was too slow is killed again.
const KILL_AGAIN: Duration = Duration::from_millis(20);
/// How often that is done, and how often leftovers are moved, before it is given up.
const MOST_ROUNDS: u32 = 200;

/// A further process of a container.
#[derive(Debug)]
pub(super) struct ExecProcess {
    container: String,
    to: ReplyAddress,
    pub(super) pid: Option<u32>,
    /// The control group of it and of all that it starts.
    group: Option<PathBuf>,
    pub(super) deadline: Option<Mono>,
    ends_with_connection: bool,
    timed_out: bool,
    rounds: u32,
    exit: Option<ExitReport>,
}

impl ShimServer {
    pub(super) fn exec(
        &mut self,
        to: ReplyAddress,
        request: ExecRequest,
        descriptors: Vec<OwnedFd>,
    ) {
        let Some(container) = self.containers.get(&request.container) else {
            return self.refuse_unknown(to, &request.container);
        };
        if container.phase != ContainerPhase::Running || container.deleting {
            let message = format!(
                "container {} does not run, so nothing can be executed in it",
                container.id
            );
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        let (directory, cgroup) = (container.directory.clone(), container.cgroup.clone());
        let number = self.next_number();
        let name = format!("exec-{number}");
        let group = self.make_exec_group(&cgroup, &name);
        let deadline = request.timeout_ms.map(|wait| self.now() + Duration::from_millis(wait));
        let exec = ExecProcess {
            container: request.container.clone(),
            to,
            pid: None,
            group,
            deadline,
            ends_with_connection: request.ends_with_connection,
            timed_out: false,
            rounds: 0,
            exit: None,
        };
        self.execs.insert(number, exec);
        if let Err(error) = self.start_exec(number, &name, &directory, request, descriptors) {
            self.exec_failed(number, &format!("cannot start the helper: {error}"));
        }
    }

    fn start_exec(
        &mut self,
        number: u64,
        name: &str,
        directory: &ContainerDirectory,
        request: ExecRequest,
        descriptors: Vec<OwnedFd>,
    ) -> std::io::Result<()> {
        let group = self.execs.get(&number).and_then(|exec| exec.group.clone());
        let ExecRequest { container, process, streams, .. } = request;
        let is_terminal = process.terminal() == Some(true);
        write_json(&directory.of_step(name, "process"), &ExecStep { process, group })?;
        let console = is_terminal.then(|| StepConsole::listen(directory, name)).transpose()?;
        let mut given = descriptors.into_iter();
        let wanted = [streams.stdin, streams.stdout, streams.stderr];
        let streams = HelperStreams(wanted.map(|is| if is { given.next() } else { None }));
        self.start_step("exec", name, &container, StepWork::Exec(number), streams, console)
    }

    fn make_exec_group(&self, cgroup: &Path, name: &str) -> Option<PathBuf> {
        let group = self.cgroups.exec_group(cgroup, name)?;
        // Without a group of its own, an exec that is too slow is killed alone.
        std::fs::create_dir(&group).ok().map(|()| group)
    }

    pub(super) fn exec_started(&mut self, number: u64, pid: u32, terminal: Option<OwnedFd>) {
        let Some(exec) = self.execs.get_mut(&number) else { return };
        exec.pid = Some(pid);
        let to = exec.to;
        self.remove_exec_files(number);
        if let Some(connection) = self.connections.get_mut(&to.connection) {
            connection.reply(to.number, ShimReply::ExecStarted { pid }, terminal);
        }
        self.claim(pid);
    }

    pub(super) fn exec_failed(&mut self, number: u64, message: &str) {
        self.remove_exec_files(number);
        let Some(exec) = self.execs.remove(&number) else { return };
        if let Some(group) = &exec.group {
            kill_exec(group);
            release_exec(group);
        }
        let message = format!("cannot execute in container {}: {message}", exec.container);
        self.refuse(exec.to, RefusalKind::Failed, message);
    }

    fn remove_exec_files(&self, number: u64) {
        let Some(exec) = self.execs.get(&number) else { return };
        let Some(directory) = self.directory.container(&exec.container) else { return };
        for file in ["process", "console", "bundle"] {
            let path = directory.of_step(&format!("exec-{number}"), file);
            // Not every exec has each of them.
            std::fs::remove_file(path).unwrap_or_default();
        }
    }

    pub(super) fn exec_ended(&mut self, number: u64, mut exit: ExitReport) {
        let now = self.now();
        let Some(exec) = self.execs.get_mut(&number) else { return };
        exit.timed_out = exec.timed_out;
        exec.exit = Some(exit);
        exec.deadline = None;
        if exec.timed_out {
            exec.deadline = Some(now);
        }
        self.finish_exec(number);
    }

    /// Ends the time of execs whose clients have gone away.
    pub(super) fn end_abandoned_execs(&mut self) {
        let now = self.now();
        let connections = &self.connections;
        let is_abandoned = |exec: &ExecProcess| {
            exec.ends_with_connection && !connections.contains_key(&exec.to.connection)
        };
        for exec in self.execs.values_mut().filter(|exec| is_abandoned(exec)) {
            exec.deadline.get_or_insert(now);
        }
    }

    /// Kills the execs whose time is over, again and again until nothing of them is left.
    pub(super) fn kill_late_execs(&mut self, now: Mono) {
        let late = |exec: &ExecProcess| exec.deadline.is_some_and(|at| at <= now);
        let numbers: Vec<u64> =
            self.execs.iter().filter(|(_, exec)| late(exec)).map(|(number, _)| *number).collect();
        for number in numbers {
            let Some(exec) = self.execs.get_mut(&number) else { continue };
            exec.timed_out = true;
            exec.rounds += 1;
            exec.deadline = Some(now + KILL_AGAIN);
            if let Some(group) = &exec.group {
                kill_exec(group);
            }
            // It has no group of its own, or has left it, as a privileged one may.
            if let Some(pid) = exec.pid.filter(|_| exec.exit.is_none()) {
                super::reap::kill_process(pid);
            }
            self.finish_exec(number);
        }
    }

    /// Answers for an exec that has ended, when those that have to die with it are dead.
    fn finish_exec(&mut self, number: u64) {
        let Some(exec) = self.execs.get(&number) else { return };
        let Some(exit) = exec.exit.clone() else { return };
        if let Some(group) = &exec.group {
            let is_left = exec.timed_out && !is_exec_gone(group);
            if is_left && exec.rounds < MOST_ROUNDS {
                return;
            }
            release_exec(group);
        }
        let to = exec.to;
        self.execs.remove(&number);
        self.reply(to, ShimReply::ExecExited { exit });
    }

    /// Forgets the execs of a container that is gone.
    pub(super) fn finish_execs_of(&mut self, container: &str) {
        for exec in self.execs.values_mut().filter(|exec| exec.container == container) {
            exec.rounds = MOST_ROUNDS;
        }
    }
}

/// Moves a process into a group.
pub(super) fn move_into(group: &Path, pid: u32) -> std::io::Result<()> {
    std::fs::File::options()
        .write(true)
        .open(group.join("cgroup.procs"))?
        .write_all(pid.to_string().as_bytes())
}
