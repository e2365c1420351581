//! Runs a node agent that joins a control plane: the Go kubelet, or ours in its place.
//!
//! Both get the same configuration file and root directory, so that one can take over from the other.

mod config;
mod tunables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::control_plane::ControlPlane;
use crate::manifests::Manifests;
use crate::parts::kubernetes::KUBELET;
use crate::process::ManagedProcess;
use crate::rig::Rig;

use tunables::FakeTunables;

/// Which node agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Implementation {
    /// The Go kubelet, which must have been prepared.
    Go,
    /// Ours: the program `oarsman`.
    Oarsman(PathBuf),
}

/// What an agent is started with.
#[derive(Debug, Clone)]
pub struct KubeletOptions {
    /// The node's name.
    pub name: String,
    /// More flags, as `--name=value`.
    pub flags: Vec<String>,
    /// Fields of its configuration that are other than usual.
    pub settings: Map<String, Value>,
    /// The kubeconfig, if it is not the one of a node of that name.
    pub kubeconfig: Option<PathBuf>,
}

impl Default for KubeletOptions {
    fn default() -> Self {
        let (name, settings) = ("node".to_owned(), Map::new());
        Self { name, flags: Vec::new(), settings, kubeconfig: None }
    }
}

/// An agent: its directories, and its process while it runs. It is killed when this is dropped.
pub struct Kubelet {
    process: ManagedProcess,
    name: String,
    paths: KubeletPaths,
    _tunables: Option<FakeTunables>,
}

/// The paths of an agent. Agents of one name on one rig share them.
#[derive(Debug, Clone)]
struct KubeletPaths {
    root: PathBuf,
    manifests: Manifests,
    config: PathBuf,
    log: PathBuf,
}

impl Kubelet {
    /// Makes the agent's directories and writes its configuration; the process is still to be started.
    ///
    /// # Errors
    /// When the program is not there, or something cannot be written.
    pub fn new(
        rig: &Rig,
        plane: &ControlPlane,
        which: &Implementation,
        options: &KubeletOptions,
    ) -> Result<Self> {
        let paths = KubeletPaths::create(rig, &options.name)?;
        fs::write(&paths.config, config::text(rig, plane, &paths, &options.settings))?;
        let kubeconfig = match &options.kubeconfig {
            Some(path) => path.clone(),
            None => plane.kubeconfig_of_node(&options.name)?,
        };
        let (program, subcommand) = match which {
            Implementation::Go => (KUBELET.path()?, None),
            Implementation::Oarsman(program) => (program.clone(), Some("kubelet".to_owned())),
        };
        let own = subcommand.into_iter().chain(flags(&paths, &kubeconfig, plane, options));
        let tunables =
            matches!(which, Implementation::Go).then(|| FakeTunables::show(rig.directory()));
        let process =
            ManagedProcess::new(&options.name, &program, own.collect(), paths.log.clone());
        Ok(Self { process, name: options.name.clone(), paths, _tunables: tunables.transpose()? })
    }

    /// Starts the agent, which appends to its log.
    ///
    /// # Errors
    /// When it runs already, or its program cannot be started.
    pub fn start(&self) -> Result<()> {
        self.process.start()
    }

    /// Kills the agent, as a crash would, and waits until it is dead.
    ///
    /// # Errors
    /// When it was never started.
    pub fn kill(&self) -> Result<()> {
        self.process.kill()
    }

    /// Sends SIGTERM to the agent, and waits until it has ended.
    ///
    /// # Errors
    /// When it does not end in time: it is killed then. The error carries the end of its log.
    pub async fn terminate(&self, max_wait: Duration) -> Result<ExitStatus> {
        self.process.terminate(max_wait).await
    }

    /// Whether the agent's process runs.
    pub fn is_alive(&self) -> bool {
        self.process.is_alive()
    }

    /// The pid of the agent.
    ///
    /// # Errors
    /// When it does not run; the error carries the end of its log.
    pub fn pid(&self) -> Result<u32> {
        self.process.pid()
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The agent's root directory.
    pub fn root(&self) -> &Path {
        &self.paths.root
    }

    /// The directory of the agent's static pods.
    pub fn manifests(&self) -> &Manifests {
        &self.paths.manifests
    }

    /// The agent's configuration file.
    pub fn config(&self) -> &Path {
        &self.paths.config
    }

    /// The arguments the agent is started with.
    pub fn arguments(&self) -> &[String] {
        self.process.arguments()
    }

    /// The agent's log file.
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// The end of the agent's log.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// Removes the agent's directories and its log. To be called when it is dead and its pods are gone.
    pub fn remove_files(&self) {
        for directory in [self.paths.root.as_path(), self.paths.manifests.path()] {
            // Another agent with the same paths may have removed them first.
            fs::remove_dir_all(directory).ok();
        }
        for file in [&self.paths.config, &self.paths.log] {
            fs::remove_file(file).ok();
        }
    }
}

/// The flags that both agents take.
fn flags(
    paths: &KubeletPaths,
    kubeconfig: &Path,
    plane: &ControlPlane,
    options: &KubeletOptions,
) -> Vec<String> {
    let mut flags = vec![
        format!("--config={}", paths.config.display()),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--root-dir={}", paths.root.display()),
        format!("--cert-dir={}", paths.root.join("pki").display()),
        format!("--hostname-override={}", options.name),
        format!("--node-ip={}", plane.node_address()),
    ];
    flags.extend(options.flags.iter().cloned());
    flags
}

impl KubeletPaths {
    fn create(rig: &Rig, name: &str) -> Result<Self> {
        let of = |kind: &str| rig.directory().join(format!("{name}-{kind}"));
        let paths = Self {
            root: rig.agents().join(name),
            manifests: Manifests::create(of("static-pods"))?,
            config: of("kubelet.yaml"),
            log: of("kubelet.log"),
        };
        let root = &paths.root;
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        Ok(paths)
    }
}
