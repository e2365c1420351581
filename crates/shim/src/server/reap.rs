//! Children that have ended: helpers, containers, execs, and orphans that came to us.

use std::io::Read;
use std::os::unix::net::UnixStream;

use oarsman_clock::Clock;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait, waitpid};

use super::ShimServer;
use super::container::{DRAIN_TIMEOUT, HeldContainer};
use crate::protocol::{ContainerPhase, ExitReport, ShimReply};

/// How many ends are kept for helpers that have not told their children yet.
const MOST_UNCLAIMED: usize = 4096;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawExit {
    code: i32,
    signal: Option<i32>,
}

impl RawExit {
    fn of(status: WaitStatus) -> Self {
        let signal = status.terminating_signal();
        Self { code: status.exit_status().unwrap_or_else(|| 128 + signal.unwrap_or(0)), signal }
    }
}

fn raw_pid(pid: Pid) -> u32 {
    u32::try_from(pid.as_raw_nonzero().get()).unwrap_or(0)
}

/// Empties the socket that signals write to.
pub(super) fn drain(mut socket: &UnixStream) {
    let mut buffer = [0; 256];
    while socket.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

pub(super) fn kill_process(pid: u32) {
    signal_process(pid, Signal::KILL);
}

pub(super) fn signal_process(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // One that has ended needs no signal.
    pid.map(|pid| rustix::process::kill_process(pid, signal).ok());
}

impl ShimServer {
    /// Takes the exits of all children that have ended.
    pub(super) fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            self.child_ended(raw_pid(pid), RawExit::of(status));
        }
    }

    /// Takes the exit of a container whose control group is gone: its process is dead, or as good as.
    pub(super) fn await_exit(&mut self, id: &str) {
        let container = self.containers.get(id).filter(|container| container.exit.is_none());
        let pid = container.and_then(|container| container.pid);
        let Some(pid) = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) else { return };
        // An error tells that it is not our child any more.
        if let Ok(Some((_, status))) = waitpid(Some(pid), WaitOptions::empty()) {
            self.child_ended(raw_pid(pid), RawExit::of(status));
        }
    }

    /// A process is known now; it may have ended before.
    pub(super) fn claim(&mut self, pid: u32) {
        if let Some(exit) = self.unclaimed.remove(&pid) {
            self.child_ended(pid, exit);
        }
    }

    fn child_ended(&mut self, pid: u32, raw: RawExit) {
        let exit = ExitReport {
            exit_code: raw.code,
            signal: raw.signal,
            finished_at: self.clock.wall(),
            oom_killed: false,
            timed_out: false,
            unknown: false,
        };
        let step = self.steps.iter().find(|(_, step)| step.pid == pid).map(|(number, _)| *number);
        let exec =
            self.execs.iter().find(|(_, exec)| exec.pid == Some(pid)).map(|(number, _)| *number);
        let is_running = |c: &&mut HeldContainer| c.pid == Some(pid) && c.exit.is_none();
        if let Some(number) = step {
            self.finish_step(number);
        } else if let Some(number) = exec {
            self.exec_ended(number, exit);
        } else if let Some(container) = self.containers.values_mut().find(is_running) {
            container.phase = ContainerPhase::Exited;
            container.exit = Some(exit);
            let id = container.id.clone();
            self.container_ended(&id);
        } else if self.pod_init.as_ref().is_some_and(|init| init.child.id() == pid) {
            self.pod_init = None;
        } else if !self.steps.is_empty() && self.unclaimed.len() < MOST_UNCLAIMED {
            self.unclaimed.insert(pid, raw);
        }
    }

    /// Writes the exit down at once; it is told when the output is in the log.
    fn container_ended(&mut self, id: &str) {
        let drain_until = self.now() + DRAIN_TIMEOUT;
        let Some(container) = self.containers.get_mut(id) else { return };
        // Without a pid namespace of its own, the others of the container go on, and nothing would ever end them.
        self.cgroups.kill_container(&container.cgroup);
        if let Some(exit) = &mut container.exit {
            exit.oom_killed = self.cgroups.had_oom_kill(&container.cgroup);
        }
        container.stdin.close();
        container.drain_until = Some(drain_until);
        container.save();
        self.finish_execs_of(id);
    }

    /// Tells the exits of those containers whose output has been read.
    pub(super) fn finish_exits(&mut self) {
        let now = self.now();
        let ended = self.containers.values_mut().filter(|c| c.exit.is_some() && !c.exit_told);
        let settled = ended.filter_map(|c| c.has_settled(now).then(|| c.id.clone()));
        let ids: Vec<String> = settled.collect();
        for id in ids {
            let Some(mut container) = self.containers.remove(&id) else { continue };
            // What still holds the pipes open is not the container.
            container.outputs.clear();
            self.tell_exit(&mut container);
            self.containers.insert(id, container);
        }
    }

    pub(super) fn tell_exit(&mut self, container: &mut HeldContainer) {
        let Some(exit) = container.exit.clone().filter(|_| !container.exit_told) else { return };
        container.exit_told = true;
        container.terminal = None;
        container.save();
        let reply = ShimReply::Exited { container: container.id.clone(), exit };
        let waiters = std::mem::take(&mut container.waiters);
        for to in waiters.into_iter().chain(self.subscribers.clone()) {
            self.reply(to, reply.clone());
        }
    }
}
