//! The program of pod sandboxes: holds the pod's namespaces open, reaps orphans, and ends on SIGTERM.

use std::io;

use rustix::process::{WaitOptions, wait};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

fn main() -> io::Result<()> {
    let mut signals = Signals::new([SIGCHLD, SIGINT, SIGTERM])?;
    // Children may have ended before the handler was installed.
    reap();
    for signal in signals.forever() {
        match signal {
            SIGCHLD => reap(),
            _ => break,
        }
    }
    Ok(())
}

/// One signal may stand for several children.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
