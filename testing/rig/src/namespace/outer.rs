//! The process outside of the namespaces: prepares, waits, and checks for leaks.

use std::io::{Write, pipe};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};

use anyhow::{Context, Result};
use oarsman_host::namespaces::{self, NamespaceKind};
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;

use super::outside::OutsideSnapshot;
use super::{ENDING, INIT, copy_of_this_program, exit_code, forward_signal};
use crate::parts::{prepare, print_progress};
use crate::run::{self, OwnedRun, RigRun};

/// Prepares, runs the tests, and checks that nothing of them is left.
pub(super) fn run() -> Result<u8> {
    let held = OwnedRun::begin(&prepare()?)?;
    let outside = OutsideSnapshot::take()?;
    let mut signals = Signals::new(ENDING.iter().chain(&[SIGCHLD]))?;
    let (mut init, namespace) = start_init(held.run()).context("cannot enter new namespaces")?;
    let code = wait_for(&mut init, &mut signals)?;
    let left = outside.left_behind(&held.run().group_prefix(), &namespace)?;
    for thing in &left {
        print_progress(&format!("left behind outside of the namespaces: {thing}"));
    }
    held.end()?;
    Ok(if code == 0 && !left.is_empty() { 1 } else { code })
}

/// Starts process 1 and returns its pid namespace.
///
/// The child sets itself up to die with us and then waits for a byte. If we are dead by then it reads the end of the pipe instead: so there is
/// no moment at which it could outlive us.
fn start_init(run: &RigRun) -> Result<(Child, String)> {
    let (reader, mut writer) = pipe()?;
    let mut command = copy_of_this_program(INIT);
    // Ctrl-C at a terminal signals every process of a group: those inside get the signal from us, and once.
    command.env(run::VARIABLE, run.directory()).stdin(reader).process_group(0);
    let child = namespaces::with_new_pid_namespace(|| command.spawn())?;
    let namespace = namespaces::of_process(child.id(), NamespaceKind::Pid)?;
    writer.write_all(b"!")?;
    Ok((child, namespace))
}

fn wait_for(init: &mut Child, signals: &mut Signals) -> Result<u8> {
    loop {
        if let Some(status) = init.try_wait()? {
            return Ok(code_of(status));
        }
        for signal in signals.wait().filter(|signal| *signal != SIGCHLD) {
            forward_signal(signal, init.id());
        }
    }
}

fn code_of(status: ExitStatus) -> u8 {
    exit_code(status.code(), status.signal())
}
