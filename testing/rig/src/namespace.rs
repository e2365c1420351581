//! Runs tests in mount, network and pid namespaces of their own.
//!
//! The test binary runs three times over: outside, where it prepares, waits, forwards signals and at last checks that nothing was left outside;
//! as process 1 of the new namespaces, where it reaps; and as the tests themselves. When either of the first two dies, however that happens, the
//! kernel kills everything inside.
//!
//! Inside there is no network but loopback, and no mount can be seen from outside. `/run`, `/var/lib` and `/var/log` are empty and in memory, so
//! that stray files there are gone at the end and harm no other program; except for what [`SHARED`] names.

mod init;
mod outer;
mod outside;

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::Result;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::parts::print_progress;
use crate::signals;

/// The environment variable that tells a started copy of this program which of the three it is.
const STAGE: &str = "OARSMAN_RIG_STAGE";
/// The environment variable with directories, separated by colons, that are the same inside and outside.
pub const SHARED: &str = "OARSMAN_RIG_SHARED";
const INIT: &str = "init";
const TESTS: &str = "tests";
/// The signals that end a program.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Runs `tests` in new namespaces and returns their exit code, or another one if they left something
/// outside. To be called first thing in main, before there is a second thread.
///
/// With `--list` among the arguments nothing is prepared, and `tests` is called right here.
pub fn run(tests: impl FnOnce() -> ExitCode) -> ExitCode {
    run_after(|| Ok(()), tests)
}

/// The same, but calls `ready` first, outside, where there is a network and nothing is covered.
pub fn run_after(ready: impl FnOnce() -> Result<()>, tests: impl FnOnce() -> ExitCode) -> ExitCode {
    let result = match env::var(STAGE).as_deref() {
        Ok(TESTS) => return tests(),
        Ok(INIT) => init::run(),
        _ if env::args_os().any(|argument| argument == "--list") => return tests(),
        _ => ready().and_then(|()| outer::run()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            print_progress(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// This program again, with the same arguments.
fn copy_of_this_program(stage: &str) -> Command {
    let mut arguments = env::args_os();
    let mut command = Command::new("/proc/self/exe");
    command.arg0(arguments.next().unwrap_or_else(|| OsString::from("rig")));
    command.args(arguments).env(STAGE, stage);
    command
}

/// Forwards a signal to a child, which may have ended already.
fn forward_signal(signal: i32, child: u32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        signals::send(child, signal);
    }
}

/// A program's end as an exit code: its own, or 128 and the number of the signal that killed it.
fn exit_code(own: Option<i32>, signal: Option<i32>) -> u8 {
    let code = own.or(signal.map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
