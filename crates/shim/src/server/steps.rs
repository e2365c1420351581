//! The helpers of a shim: one process for each create, exec and delete.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use oarsman_core::time::Mono;
use oarsman_host::processes::kill_group;

use super::console::StepConsole;
use super::{ReplyAddress, ShimServer};
use crate::directory::ContainerDirectory;
use crate::file_io::read_json;
use crate::helper::StepResult;
use crate::protocol::{ContainerPhase, RefusalKind, ShimReply};

/// How long a helper has. A root file system on a server that does not answer is the usual reason to need it.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);

/// What a helper is for.
#[derive(Debug)]
pub(super) enum StepWork {
    Create(ReplyAddress),
    Exec(u64),
    /// With the answer that follows it.
    Delete(ReplyAddress, ShimReply),
}

/// A helper that runs.
#[derive(Debug)]
pub(super) struct HelperStep {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) container: String,
    pub(super) work: StepWork,
    pub(super) deadline: Mono,
    pub(super) console: Option<StepConsole>,
}

impl HelperStep {
    pub(super) fn console(&self) -> Option<BorrowedFd<'_>> {
        self.console.as_ref()?.descriptor()
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        match self.console.take()?.advance() {
            StepConsole::Received(terminal) => Some(terminal),
            _ => None,
        }
    }
}

/// The descriptors that a helper gets as its own stdin, stdout and stderr, and hands on to the container.
#[derive(Debug)]
pub(super) struct HelperStreams(pub(super) [Option<OwnedFd>; 3]);

impl ShimServer {
    /// Starts a helper.
    pub(super) fn start_step(
        &mut self,
        call: &str,
        name: &str,
        container: &str,
        work: StepWork,
        streams: HelperStreams,
        console: Option<StepConsole>,
    ) -> io::Result<()> {
        let pid = spawn(self.directory.path(), [call, container, name], streams)?;
        let deadline = self.now() + STEP_TIMEOUT;
        let (name, container) = (name.to_owned(), container.to_owned());
        let number = self.next_number();
        self.steps.insert(number, HelperStep { pid, name, container, work, deadline, console });
        Ok(())
    }

    pub(super) fn kill_late_steps(&mut self, now: Mono) {
        for step in self.steps.values_mut().filter(|step| step.deadline <= now) {
            kill_group(step.pid);
            step.deadline = now + STEP_TIMEOUT;
        }
    }

    /// A helper has ended.
    pub(super) fn finish_step(&mut self, number: u64) {
        let Some(mut step) = self.steps.remove(&number) else { return };
        let terminal = step.take_terminal();
        let directory = self.directory.container(&step.container);
        let result = directory.as_ref().map_or_else(died, |at| take_result(at, &step.name));
        if !matches!(result, StepResult::Done { .. }) {
            // What it had begun may still be there: in its process group, or in the control group that delete empties.
            kill_group(step.pid);
        }
        match (step.work, result) {
            (StepWork::Create(to), StepResult::Done { pid: Some(pid) }) => {
                self.created(to, &step.container, pid, terminal);
            }
            (StepWork::Create(to), result) => {
                self.undo_create(to, &step.container, &result.to_string());
            }
            (StepWork::Exec(exec), StepResult::Done { pid: Some(pid) }) => {
                self.exec_started(exec, pid, terminal);
            }
            (StepWork::Exec(exec), result) => self.exec_failed(exec, &result.to_string()),
            (StepWork::Delete(to, reply), StepResult::Done { .. }) => {
                self.deleted(&step.container, to, reply);
            }
            (StepWork::Delete(to, _), result) => {
                self.delete_failed(&step.container, to, &result.to_string());
            }
        }
        if self.steps.is_empty() {
            self.unclaimed.clear();
        }
    }

    fn created(&mut self, to: ReplyAddress, id: &str, pid: u32, terminal: Option<OwnedFd>) {
        let wall = oarsman_clock::Clock::wall(&self.clock);
        let Some(container) = self.containers.get_mut(id) else { return };
        (container.phase, container.pid) = (ContainerPhase::Created, Some(pid));
        container.created_at = Some(wall);
        let failed =
            terminal.map(|terminal| container.use_terminal(terminal)).and_then(Result::err);
        container.save();
        if let Some(error) = failed {
            return self.undo_create(to, id, &format!("cannot use its terminal: {error}"));
        }
        let now = self.now();
        if let Some(container) = self.containers.get_mut(id) {
            container.await_log(to, now);
        }
        self.claim(pid);
        self.settle_logs();
    }

    /// The failed create is answered when nothing is left of it.
    pub(super) fn undo_create(&mut self, to: ReplyAddress, id: &str, message: &str) {
        let message = format!("cannot create container {id}: {message}");
        let reply = ShimReply::Refused { kind: RefusalKind::Failed, message };
        self.start_delete(to, id, reply);
    }

    /// Starts the removal of a container, and answers when it is done.
    pub(super) fn start_delete(&mut self, to: ReplyAddress, id: &str, reply: ShimReply) {
        if let Some(container) = self.containers.get_mut(id) {
            container.deleting = true;
            if container.delete_at_once(&self.directory, &self.cgroups) {
                return self.deleted(id, to, reply);
            }
        }
        let work = StepWork::Delete(to, reply);
        if let Err(error) =
            self.start_step("delete", "delete", id, work, HelperStreams([None, None, None]), None)
        {
            self.delete_failed(id, to, &format!("cannot start the helper: {error}"));
        }
    }

    fn deleted(&mut self, id: &str, to: ReplyAddress, reply: ShimReply) {
        self.await_exit(id);
        if let Some(mut container) = self.containers.remove(id) {
            self.tell_exit(&mut container);
        }
        self.reply(to, reply);
    }

    fn delete_failed(&mut self, id: &str, to: ReplyAddress, message: &str) {
        if let Some(container) = self.containers.get_mut(id) {
            container.deleting = false;
            container.save();
        }
        self.refuse(to, RefusalKind::Failed, format!("cannot delete container {id}: {message}"));
    }
}

fn spawn(directory: &Path, arguments: [&str; 3], streams: HelperStreams) -> io::Result<u32> {
    let [stdin, stdout, stderr] =
        streams.0.map(|stream| stream.map_or_else(Stdio::null, Stdio::from));
    let mut command = Command::new("/proc/self/exe");
    command.arg0("oarsman-shim-helper").arg(crate::helper::ARGUMENT).arg(directory).args(arguments);
    // Nothing of the agent's environment reaches a container, and a helper is killed with what it has cloned.
    command.env_clear().current_dir("/").process_group(0);
    Ok(command.stdin(stdin).stdout(stdout).stderr(stderr).spawn()?.id())
}

fn take_result(directory: &ContainerDirectory, name: &str) -> StepResult {
    let path = directory.of_step(name, "result");
    let result = read_json(&path).ok().flatten();
    // The directory may be gone with the container.
    std::fs::remove_file(&path).unwrap_or_default();
    match result {
        Some(result) => result,
        None if name == "delete" && !directory.path().exists() => StepResult::Done { pid: None },
        None => died(),
    }
}

fn died() -> StepResult {
    StepResult::Failed { message: "the helper was killed before it was done".to_owned() }
}
