//! A command beside a containerd of the rig, in namespaces of their own: for machines that have no runtime.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use oarsman_rig::{Options, Rig, namespace};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

/// Where crictl and `oarsman run` look for a runtime.
const ENDPOINT: &str = "CONTAINER_RUNTIME_ENDPOINT";

/// Runs a command and ends as it did. Directories that [`namespace::SHARED`] names are the same for it as for everybody.
pub(crate) fn run(command: &[OsString]) -> ExitCode {
    namespace::run(|| match inside(command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("rig: {error:#}");
            ExitCode::FAILURE
        }
    })
}

#[tokio::main]
async fn inside(command: &[OsString]) -> Result<ExitCode> {
    let (program, arguments) = command.split_first().context("name a command to run")?;
    let rig = Rig::start(Options::default()).await?;
    let endpoint = format!("unix://{}", rig.socket().display());
    // Where everybody looks for it: inside, nobody else's can be there.
    let usual = Path::new("/run/containerd");
    fs::create_dir_all(usual)?;
    symlink(rig.socket(), usual.join("containerd.sock"))?;
    eprintln!("rig: containerd is at {endpoint} for as long as this runs");
    let child = Command::new(program).args(arguments).env(ENDPOINT, endpoint).spawn();
    let child = child.with_context(|| format!("cannot start {}", program.display()))?;
    let status = attend(child).await;
    rig.stop().await?;
    let code = status?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Waits for a child and passes on what asks it to end.
async fn attend(mut child: std::process::Child) -> Result<ExitStatus> {
    let pid = Pid::from_child(&child);
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        let passed_on = tokio::select! {
            status = &mut ended => return Ok(status??),
            _ = interrupt.recv() => kill_process(pid, Signal::INT),
            _ = terminate.recv() => kill_process(pid, Signal::TERM),
        };
        // One that has just ended cannot be told, and need not be.
        passed_on.ok();
    }
}
