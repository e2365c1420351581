//! Process 1 of the new namespaces: makes them fit to live in, reaps, and ends with the tests.
//!
//! When it ends, the kernel kills whatever else is in its pid namespace and lets it go only when all
//! of that is dead.

use std::io::{Read, stdin};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use oarsman_host::namespaces::{self, Kind};
use rustix::process::{WaitOptions, wait};
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;

use super::{ENDING, TESTS, copy_of_this_program, exit_code, pass_on};

/// Where programs leave things by habit.
const COVERED: [&str; 3] = ["/run", "/var/lib", "/var/log"];

pub(super) fn run() -> Result<u8> {
    namespaces::die_with_parent()?;
    stdin().read_exact(&mut [0]).context("the process outside is gone")?;
    furnish()?;
    let mut signals = Signals::new(ENDING.iter().chain(&[SIGCHLD]))?;
    let tests = copy_of_this_program(TESTS).stdin(Stdio::null()).spawn()?.id();
    loop {
        if let Some(code) = reap(tests)? {
            return Ok(code);
        }
        for signal in signals.wait().filter(|signal| *signal != SIGCHLD) {
            pass_on(signal, tests);
        }
    }
}

fn furnish() -> Result<()> {
    namespaces::enter_new(&[Kind::Mount, Kind::Network])?;
    namespaces::isolate_mounts()?;
    namespaces::mount_proc()?;
    for directory in COVERED {
        namespaces::cover_with_empty(Path::new(directory))
            .with_context(|| format!("cannot cover {directory}"))?;
    }
    let loopback = Command::new("ip").args(["link", "set", "lo", "up"]).status()?;
    ensure!(loopback.success(), "ip could not bring loopback up");
    Ok(())
}

/// Takes in all who have ended; if the tests are among them, their exit code.
fn reap(tests: u32) -> Result<Option<u8>> {
    let mut code = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if u32::try_from(pid.as_raw_nonzero().get())? == tests {
            code = Some(exit_code(status.exit_status(), status.terminating_signal()));
        }
    }
    Ok(code)
}
