//! Process 1 of the new namespaces: sets up mounts, reaps, and ends with the tests.
//!
//! When it ends, the kernel kills whatever else is in its pid namespace, and reports its end only when all of that is dead.

use std::env;
use std::fs::{self, File};
use std::io::{Read, stdin};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use oarsman_host::namespaces::{self, NamespaceKind};
use rustix::mount::mount_bind;
use rustix::process::{WaitOptions, wait};
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;

use super::{ENDING, SHARED, TESTS, copy_of_this_program, exit_code, forward_signal};

/// Directories that programs write to by default.
const COVERED: [&str; 3] = ["/run", "/var/lib", "/var/log"];

pub(super) fn run() -> Result<u8> {
    namespaces::die_with_parent()?;
    stdin().read_exact(&mut [0]).context("the process outside is gone")?;
    set_up_mounts()?;
    let mut signals = Signals::new(ENDING.iter().chain(&[SIGCHLD]))?;
    let tests = copy_of_this_program(TESTS).stdin(Stdio::null()).spawn()?.id();
    loop {
        if let Some(code) = reap(tests)? {
            return Ok(code);
        }
        for signal in signals.wait().filter(|signal| *signal != SIGCHLD) {
            forward_signal(signal, tests);
        }
    }
}

fn set_up_mounts() -> Result<()> {
    namespaces::enter_new(&[NamespaceKind::Mount, NamespaceKind::Network])?;
    namespaces::isolate_mounts()?;
    namespaces::mount_proc()?;
    let shared = SharedDirectories::open()?;
    for directory in COVERED {
        namespaces::cover_with_empty(Path::new(directory))
            .with_context(|| format!("cannot cover {directory}"))?;
    }
    shared.uncover()?;
    let loopback = Command::new("ip").args(["link", "set", "lo", "up"]).status()?;
    ensure!(loopback.success(), "ip could not bring loopback up");
    Ok(())
}

/// Directories that stay what they are outside, held open while their parents are covered.
struct SharedDirectories(Vec<(PathBuf, File)>);

impl SharedDirectories {
    fn open() -> Result<Self> {
        let shared = env::var_os(SHARED).unwrap_or_default();
        let open = |path: PathBuf| {
            fs::create_dir_all(&path)?;
            let directory = File::open(&path)?;
            Ok((path, directory))
        };
        let paths = env::split_paths(&shared).filter(|path| !path.as_os_str().is_empty());
        Ok(Self(paths.map(open).collect::<Result<_>>()?))
    }

    fn uncover(self) -> Result<()> {
        for (path, directory) in self.0 {
            fs::create_dir_all(&path)?;
            let held = format!("/proc/self/fd/{}", directory.as_raw_fd());
            mount_bind(held, &path).with_context(|| format!("cannot share {}", path.display()))?;
        }
        Ok(())
    }
}

/// Reaps all processes that have ended; if the tests are among them, returns their exit code.
fn reap(tests: u32) -> Result<Option<u8>> {
    let mut code = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if u32::try_from(pid.as_raw_nonzero().get())? == tests {
            code = Some(exit_code(status.exit_status(), status.terminating_signal()));
        }
    }
    Ok(code)
}
