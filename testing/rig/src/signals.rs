//! Signals to processes that we started.

use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal to a process, which may have ended by itself just now.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        kill_process(pid, signal).ok();
    }
}
