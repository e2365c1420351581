//! Runs a containerd for tests, or `oarsman cri` in its place, with directories, network and cgroup of its own.

mod cni;
mod config;
mod containerd;
pub(crate) mod embedded;
mod flavour;
mod image_disk;
mod layout;
mod reboot;
mod teardown;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use oarsman_cri::{Deadlines, RemoteRuntime, Runtime};
use tokio::process::Command;

use crate::clock;
use crate::images::{self, OciImage};
use crate::parts::{Parts, print_progress};
use crate::run::{RigRun, make_directory};

use containerd::ContainerdProcess;
pub use flavour::ContainerdFlavour;
pub(crate) use layout::RigLayout;

/// How long containerd may take to do what it was asked.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The error of containerd's calls while it starts.
const NOT_YET: &str = "server is not initialized yet";
/// How many lines of containerd's log an error carries.
const LOG_TAIL: usize = 40;

/// The options of a rig.
#[derive(Debug, Default)]
pub struct RigOptions {
    /// Images to be on the node besides the standard ones.
    pub images: Vec<OciImage>,
    /// Which containerd.
    pub flavour: ContainerdFlavour,
    /// The program whose `oarsman cri` runs; needed on a rig of that flavour.
    pub program: Option<PathBuf>,
    /// The size in bytes of a file system of its own for containerd's root directory, with all images and snapshots; none for the machine's.
    pub image_disk: Option<u64>,
}

/// A containerd with root, state, socket, network and cgroup parent of its own, and the standard
/// [`images`] on it. All that it started ends with it, also when a test panics.
pub struct Rig {
    layout: RigLayout,
    parts: Parts,
    containerd: ContainerdProcess,
}

impl Rig {
    /// Starts a containerd and waits until it serves CRI and has the images.
    ///
    /// # Errors
    /// When it does not come up; the error carries the end of containerd's log.
    pub async fn start(options: RigOptions) -> Result<Self> {
        static COUNT: AtomicU8 = AtomicU8::new(1);
        let run = RigRun::current()?;
        let parts = options.flavour.choose(run.parts()?)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let layout = RigLayout::create(&run, number, options.flavour)?;
        if let Some(bytes) = options.image_disk {
            image_disk::mount(&layout, bytes)?;
        }
        fs::write(layout.config(), options.flavour.config(&layout, &parts))?;
        let containerd = ContainerdProcess::new(oarsman(&options)?);
        let rig = Self { layout, parts, containerd };
        fs::write(rig.cni_configuration(), cni::bridge(&rig.layout))?;
        if options.flavour.has_socket() {
            rig.restart().await?;
        }
        let mut images = images::standard(&rig.parts)?;
        images.extend(options.images);
        rig.import(&images).await?;
        Ok(rig)
    }

    /// The socket of containerd, or of `oarsman cri`.
    pub fn socket(&self) -> PathBuf {
        self.layout.socket()
    }

    /// The runtime of agents on this rig, as their configuration names it.
    pub fn endpoint(&self) -> String {
        match self.flavour().has_socket() {
            true => format!("unix://{}", self.socket().display()),
            false => "embedded".to_owned(),
        }
    }

    /// The address of the newest containerd's metrics, at `/v1/metrics`; Debian's has none.
    pub fn metrics(&self) -> SocketAddr {
        self.layout.metrics()
    }

    /// The directory of all files of this rig.
    pub fn directory(&self) -> &Path {
        self.layout.directory()
    }

    /// containerd's log file.
    pub fn log(&self) -> PathBuf {
        self.layout.log()
    }

    /// The configuration of the pods' network, for tests that break it and mend it again.
    pub fn cni_configuration(&self) -> PathBuf {
        self.layout.cni_configuration().join("10-rig.conflist")
    }

    /// containerd's root directory, which has all images.
    pub fn images(&self) -> PathBuf {
        self.layout.root()
    }

    /// A directory for the logs of pods.
    pub fn pod_logs(&self) -> PathBuf {
        self.layout.logs()
    }

    /// A directory for the root directories of agents, one below it for each. What is two levels below such a root belongs to a pod.
    pub fn agents(&self) -> PathBuf {
        self.layout.agents()
    }

    /// The control group below which all pods of this rig are to be.
    pub fn cgroup_parent(&self) -> String {
        self.layout.cgroup_parent().display().to_string()
    }

    /// The components of the rig.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The flavour of its containerd.
    pub fn flavour(&self) -> ContainerdFlavour {
        self.layout.flavour()
    }

    pub(crate) fn layout(&self) -> &RigLayout {
        &self.layout
    }

    /// A client of the runtime.
    ///
    /// # Errors
    /// When no process of the rig serves CRI.
    pub fn client(&self) -> Result<RemoteRuntime> {
        ensure!(self.flavour().has_socket(), "this rig has no runtime of its own");
        Ok(RemoteRuntime::new(&self.socket().to_string_lossy(), None, Deadlines::default())?)
    }

    /// Lets containerd pull from a registry without TLS.
    ///
    /// # Errors
    /// When the setting cannot be written.
    pub fn allow_registry(&self, address: SocketAddr) -> Result<()> {
        let directory = self.layout.registries().join(address.to_string());
        make_directory(&directory)?;
        let hosts = format!(
            "server = 'http://{address}'\n\
             [host.'http://{address}']\ncapabilities = ['pull', 'resolve']\n"
        );
        Ok(fs::write(directory.join("hosts.toml"), hosts)?)
    }

    /// Puts images on the node, and waits until CRI knows them.
    ///
    /// # Errors
    /// When containerd does not take them.
    pub async fn import(&self, images: &[OciImage]) -> Result<()> {
        if !self.flavour().is_containerd() {
            return embedded::import(&self.layout, images);
        }
        let archive = self.layout.directory().join("images.tar");
        fs::write(&archive, images::archive(images)?)?;
        self.ctr(&["images", "import", &archive.to_string_lossy()]).await?;
        fs::remove_file(archive)?;
        let names: Vec<&str> = images.iter().map(|image| image.name.as_str()).collect();
        let known = clock::wait_until_async(MAX_WAIT, || self.are_known_to_cri(&names)).await?;
        ensure!(
            known,
            "containerd imported {names:?}, but its CRI service does not know all of them"
        );
        Ok(())
    }

    /// Gives the images of a rig without a runtime to an agent with that root directory; nothing on another rig.
    ///
    /// # Errors
    /// When they cannot be imported.
    pub fn prepare_agent(&self, root: &Path) -> Result<()> {
        if self.flavour().has_socket() {
            return Ok(());
        }
        embedded::prepare_agent(&self.layout, root)
    }

    /// CRI learns of an imported image by an event, a moment later.
    async fn are_known_to_cri(&self, names: &[&str]) -> Result<bool> {
        let known = self.client()?.list_images(None).await?;
        let known: Vec<&String> = known.iter().flat_map(|image| &image.repo_tags).collect();
        Ok(names.iter().all(|name| known.iter().any(|known| known == name)))
    }

    /// Runs ctr in the namespace of CRI, and returns what it printed.
    ///
    /// # Errors
    /// With ctr's output on stderr, or when it takes more than a minute.
    pub async fn ctr(&self, arguments: &[&str]) -> Result<String> {
        ctr(&self.layout, &self.parts, "k8s.io", arguments).await
    }

    /// Sends SIGSTOP to containerd: it can be connected to, and does not answer.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self) -> Result<()> {
        self.containerd.pause()
    }

    /// Lets a paused containerd continue.
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&self) -> Result<()> {
        self.containerd.resume()
    }

    /// Kills containerd, as a crash would. Shims and containers run on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&self) -> Result<()> {
        let mut containerd = self.containerd.take().context("containerd does not run")?;
        containerd.kill()?;
        containerd.wait()?;
        Ok(())
    }

    /// Sends SIGTERM to containerd, and waits until it has ended. Shims and containers run on.
    ///
    /// # Errors
    /// When it does not end in time: it is killed then.
    pub async fn terminate(&self, max_wait: Duration) -> Result<ExitStatus> {
        self.containerd.terminate(max_wait).await
    }

    /// Starts a containerd that was killed, and waits until it serves CRI.
    ///
    /// # Errors
    /// When it does not come up; the error carries the end of its log.
    pub async fn restart(&self) -> Result<()> {
        self.containerd.start(&self.layout, &self.parts)?;
        let ready = clock::wait_until_async(MAX_WAIT, || self.serves_cri()).await;
        match ready {
            Ok(true) => Ok(()),
            Ok(false) => bail!("containerd does not serve CRI; its log:\n{}", self.log_tail()),
            Err(error) => Err(error.context(format!("containerd's log:\n{}", self.log_tail()))),
        }
    }

    /// Simulates a power failure and reboot of the machine: all processes of this rig are killed, files in memory are removed, the boot id is
    /// another, and the runtime has started. Agents must be dead before.
    ///
    /// # Errors
    /// When something does not die, or the runtime does not come up.
    pub async fn reboot(&self) -> Result<()> {
        if self.flavour().has_socket() {
            self.kill()?;
        }
        let layout = self.layout.clone();
        tokio::task::spawn_blocking(move || reboot::remove_volatile_state(&layout)).await??;
        match self.flavour().has_socket() {
            true => self.restart().await,
            false => Ok(()),
        }
    }

    /// Removes what the runtime has kept of the time before a reboot: containerd removes its directories of tasks only when it starts for the second
    /// time after it.
    ///
    /// # Errors
    /// When containerd does not come up.
    pub async fn settle_after_reboot(&self) -> Result<()> {
        if self.flavour().is_containerd() {
            self.kill()?;
            self.restart().await?;
        }
        Ok(())
    }

    /// Whether the runtime and its network are ready for pods.
    async fn serves_cri(&self) -> Result<bool> {
        self.containerd.check_alive()?;
        let conditions = match self.client()?.status().await {
            Ok(answer) => answer.status.unwrap_or_default().conditions,
            Err(error) if error.is_unavailable() => return Ok(false),
            // It listens before it can answer, and has no error code for that.
            Err(error) if error.to_string().contains(NOT_YET) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let is_true = |name: &str| conditions.iter().any(|it| it.r#type == name && it.status);
        Ok(is_true("RuntimeReady") && is_true("NetworkReady"))
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.layout.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }

    /// Ends all processes of this rig, and removes all its files. A second call does nothing.
    ///
    /// Pods that are still there are killed, not taken down: what CNI keeps of them outside of the
    /// rig's directory (packet filter rules, results) stays until the namespaces end.
    ///
    /// # Errors
    /// When something could not be ended or removed; the rest is.
    pub async fn stop(&self) -> Result<()> {
        let (layout, containerd) = (self.layout.clone(), self.containerd.take());
        tokio::task::spawn_blocking(move || teardown::tear_down(&layout, containerd)).await?
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Err(error) = teardown::tear_down(&self.layout, self.containerd.take()) {
            print_progress(&format!("{error:#}"));
        }
    }
}

/// The program that a rig needs on which `oarsman cri` is the runtime.
fn oarsman(options: &RigOptions) -> Result<Option<PathBuf>> {
    match options.flavour {
        ContainerdFlavour::OarsmanCri => {
            let program = options.program.clone();
            program.context("a rig with `oarsman cri` needs the program").map(Some)
        }
        ContainerdFlavour::Built | ContainerdFlavour::Debian | ContainerdFlavour::Absent => {
            Ok(None)
        }
    }
}

/// Runs ctr in a namespace of containerd.
pub(crate) async fn ctr(
    layout: &RigLayout,
    parts: &Parts,
    namespace: &str,
    arguments: &[&str],
) -> Result<String> {
    let mut command = Command::new(parts.containerd.join("ctr"));
    command.arg("--address").arg(layout.socket()).args(["--namespace", namespace]).args(arguments);
    command.kill_on_drop(true);
    let output = tokio::time::timeout(MAX_WAIT, command.output())
        .await
        .with_context(|| format!("ctr {arguments:?} takes too long"))??;
    if !output.status.success() {
        bail!("ctr {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
