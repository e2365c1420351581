//! The process that shims are forked from. It has executed this program once, so that all shims share what was loaded and relocated for it, and none waits
//! for that.
//!
//! It has one thread, and does nothing but fork. It ends with the agent, whose end of its socket is closed then.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarsman_host::fork::fork;
use oarsman_host::read_only_file::open_read_only;
use oarsman_host::{inherited_descriptors, process_title};
use rustix::process::{WaitOptions, waitpid};
use serde::{Deserialize, Serialize};

use crate::directory::ShimDirectory;
use crate::protocol::frame;
use crate::server::ContainerCgroups;
use crate::{shim, socket};

/// What a shim says when it can be connected to.
pub(crate) const READY: &str = "ready";

/// The call of the process itself, when it was executed from its read-only mount.
pub(crate) const FORKING: &str = "fork";

/// The code of a process that could not do what it was forked for.
pub(crate) const FAILED: u8 = 1;

/// What the process says first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpawnerHello {
    /// Why it cannot start shims.
    pub(crate) error: Option<String>,
}

/// A shim to start. With it comes the end of a pipe, for what the shim says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpawnRequest {
    pub(crate) directory: PathBuf,
}

/// Executes this program again, from a read-only mount of our own file: a container that gets at `/proc/PID/exe` of shim, helper or its own first process
/// before it executes its program cannot write to it (CVE-2019-5736), and no memory is spent on a copy.
///
/// Shims live as long as their pods, so they get nothing that the program which started the agent left open: a lock would be held, and a pipe have no
/// end, for as long.
pub(crate) fn execute() -> io::Result<()> {
    let error = match prepare() {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    };
    greet(Some(error.to_string()))
}

fn prepare() -> io::Result<Command> {
    let program = open_read_only(Path::new("/proc/self/exe")).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot mount our own program read-only: {error}"))
    })?;
    // It is closed when the program is executed.
    let mut command = Command::new(format!("/proc/self/fd/{}", program.into_raw_fd()));
    command.arg0("oarsman-spawner").args([shim::ARGUMENT, FORKING, &process_title::room()]);
    command.env_clear().current_dir("/");
    // The threads of logs need no memory of their own to allocate from.
    command.env("MALLOC_ARENA_MAX", "1");
    inherited_descriptors::close_on_exec()?;
    Ok(command)
}

/// Starts a shim for every request, to the end of the socket that is our stdin.
pub(crate) fn run() -> io::Result<()> {
    rustix::thread::set_name(c"oarsman-spawner")?;
    // Only people read it.
    process_title::set(["oarsman-spawner", shim::ARGUMENT, FORKING]).unwrap_or_default();
    let cgroups = ContainerCgroups::discover()?;
    greet(None)?;
    let (mut received, mut descriptors) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    loop {
        let count = match socket::receive(rustix::stdio::stdin(), &mut buffer, &mut descriptors) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            received => received?,
        };
        if count == 0 {
            return Ok(());
        }
        received.extend_from_slice(buffer.get(..count).unwrap_or_default());
        while let Some(request) = frame::take(&mut received).map_err(io::Error::other)? {
            if descriptors.is_empty() {
                return Err(io::Error::other("a request came without its pipe"));
            }
            start(&request, descriptors.remove(0), &cgroups);
        }
    }
}

fn greet(error: Option<String>) -> io::Result<()> {
    let hello = frame::encode(&SpawnerHello { error }).map_err(io::Error::other)?;
    socket::send(rustix::stdio::stdin(), &hello, &[]).map(drop)
}

/// A shim is nobody's child but init's: the process between it and us ends at once.
fn start(request: &SpawnRequest, told: OwnedFd, cgroups: &ContainerCgroups) {
    let directory = ShimDirectory::new(&request.directory);
    // Taken out by the one process that says something, which is then the only one that has it.
    let told = Cell::new(Some(File::from(told)));
    let serve = || match told.take() {
        Some(told) => shim::run_forked(&directory, told, cgroups.clone()),
        None => FAILED,
    };
    let between = || fork(serve).map_or(FAILED, |_| 0);
    let forked = fork(between).and_then(|child| Ok(waitpid(Some(child), WaitOptions::empty())?));
    let error = match forked {
        Ok(Some((_, status))) if status.exit_status() == Some(0) => return,
        Ok(_) => "the process between it and us has failed".to_owned(),
        Err(error) => error.to_string(),
    };
    // Whether anybody still waits for it does not matter.
    told.take().map(|mut told| write!(told, "cannot fork: {error}").ok());
}
