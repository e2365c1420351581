//! Holds a pod's namespaces open: does nothing, reaps what is orphaned to it, and ends when asked to.

use std::io;

use rustix::process::{WaitOptions, wait};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

fn main() -> io::Result<()> {
    let mut signals = Signals::new([SIGCHLD, SIGINT, SIGTERM])?;
    // Children may have ended before we listened.
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
