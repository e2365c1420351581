//! The embedded runtime in a process of its own, `oarsman cri`, with the images of the bench.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use oarsman_cri::{Deadlines, RemoteRuntime, Runtime};
use oarsman_host::processes;
use oarsman_rig::{Rig, images};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Duration, Instant, sleep};

/// How long it may take to serve, and to end.
const MAX_WAIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running `oarsman cri`. It is killed when this is dropped.
pub(super) struct EmbeddedProcess {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Drop for EmbeddedProcess {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl EmbeddedProcess {
    /// Starts it over a directory of the rig, and waits until it answers.
    pub(super) async fn start(program: &Path, rig: &Rig) -> Result<Self> {
        let directory = rig.directory().join("embedded");
        fs::create_dir_all(&directory)?;
        let (socket, log) = (directory.join("cri.sock"), directory.join("log"));
        import(program, rig, &directory)?;
        let output = File::create(&log)?;
        let mut command = Command::new(program);
        command.args(["cri", "--listen", &format!("unix://{}", socket.display()), "--root-dir"]);
        command.arg(&directory).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| program.display().to_string())?;
        let mut started = Self { child, socket, log };
        started.until_it_answers().await?;
        Ok(started)
    }

    async fn until_it_answers(&mut self) -> Result<()> {
        let began = Instant::now();
        while self.client()?.version().await.is_err() {
            let log = || fs::read_to_string(&self.log).unwrap_or_default();
            ensure!(
                began.elapsed() < MAX_WAIT,
                "`oarsman cri` does not answer; its log:\n{}",
                log()
            );
            if let Some(status) = self.child.try_wait()? {
                bail!("`oarsman cri` ended with {status}; its log:\n{}", log());
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    pub(super) fn client(&self) -> Result<RemoteRuntime> {
        Ok(RemoteRuntime::new(&self.socket.to_string_lossy(), None, Deadlines::default())?)
    }

    /// It, and what it has started that is no workload.
    pub(super) fn pids(&self) -> Result<Vec<u32>> {
        Ok(processes::family(&processes::list()?, &[self.child.id()]))
    }

    /// Ends it in order.
    pub(super) async fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            ensure!(began.elapsed() < MAX_WAIT, "`oarsman cri` does not end");
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Gives it the images that containerd has.
fn import(program: &Path, rig: &Rig, directory: &Path) -> Result<()> {
    let archive = directory.join("images.tar");
    fs::write(&archive, images::archive(&images::standard(rig.parts())?)?)?;
    let mut command = Command::new(program);
    command.args(["image", "--root-dir"]).arg(directory).arg("import").arg(&archive);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot import images: {said}");
    Ok(fs::remove_file(archive)?)
}
