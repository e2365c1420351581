//! The flags and the environment that an agent is started with.

use std::path::{Path, PathBuf};

use anyhow::Result;
use oarsman_rig::{ContainerdFlavour, Rig};

use crate::program;
use crate::proxy::CriProxy;

/// The node name that agents are given.
pub const NAME: &str = "node";

/// The runtime of agents on a rig.
pub(crate) fn endpoint(rig: &Rig) -> String {
    match rig.flavour() {
        ContainerdFlavour::Absent => "embedded".to_owned(),
        ContainerdFlavour::Built | ContainerdFlavour::Debian => {
            format!("unix://{}", rig.socket().display())
        }
    }
}

/// What an agent is started with.
#[derive(Debug, Clone)]
pub struct AgentSetup {
    pub(super) program: PathBuf,
    pub(super) root: PathBuf,
    pub(super) manifests: PathBuf,
    pub(super) environment: Vec<(String, String)>,
    endpoint: String,
    pod_logs: PathBuf,
    log_links: PathBuf,
    cgroup_root: String,
    flags: Vec<String>,
    is_run_mode: bool,
    config: Option<PathBuf>,
}

impl AgentSetup {
    /// On a rig: containerd at its own socket, everything below the rig's directory and its cgroup. `name` tells several agents apart; each has
    /// a root directory of its own.
    ///
    /// # Errors
    /// When the path of the program is not known.
    pub fn on(rig: &Rig, name: &str) -> Result<Self> {
        let keys = rig.directory().join("checkpoint-keys");
        Ok(Self {
            program: program::path()?,
            root: rig.agents().join(name),
            manifests: rig.directory().join(format!("{name}-manifests")),
            environment: vec![
                ("RUST_BACKTRACE".to_owned(), "1".to_owned()),
                // Nothing of a test is left in /etc.
                ("OARSMAN_CHECKPOINT_KEY_DIR".to_owned(), keys.display().to_string()),
            ],
            endpoint: endpoint(rig),
            pod_logs: rig.pod_logs(),
            log_links: rig.agents().join(name).join("log-links"),
            cgroup_root: rig.cgroup_parent(),
            flags: Vec::new(),
            is_run_mode: false,
            config: None,
        })
    }

    /// Another program.
    #[must_use]
    pub fn program(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    /// By `oarsman run`, which touches no other agent's pods.
    #[must_use]
    pub fn in_run_mode(mut self) -> Self {
        self.is_run_mode = true;
        self
    }

    /// With a configuration file, which names the directory of manifests.
    #[must_use]
    pub fn configured_by(mut self, file: &Path) -> Self {
        self.config = Some(file.to_owned());
        self
    }

    /// With a proxy in between.
    #[must_use]
    pub fn through(mut self, proxy: &CriProxy) -> Self {
        self.endpoint = proxy.endpoint();
        self
    }

    /// One more flag, as `--name=value`.
    #[must_use]
    pub fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.push(format!("--{name}={value}"));
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = if self.is_run_mode { self.as_run() } else { self.as_kubelet() };
        arguments.extend(self.flags.iter().cloned());
        arguments
    }

    fn as_run(&self) -> Vec<String> {
        vec![
            "run".to_owned(),
            self.manifests.display().to_string(),
            format!("--root-dir={}", self.root.display()),
            format!("--runtime={}", self.endpoint),
            format!("--cgroup-root={}/guest", self.cgroup_root),
            "--log-file=-".to_owned(),
            format!("--hostname-override={NAME}"),
        ]
    }

    fn as_kubelet(&self) -> Vec<String> {
        vec![
            "kubelet".to_owned(),
            format!("--root-dir={}", self.root.display()),
            format!("--container-runtime-endpoint={}", self.endpoint),
            match &self.config {
                Some(config) => format!("--config={}", config.display()),
                None => format!("--pod-manifest-path={}", self.manifests.display()),
            },
            format!("--pod-logs-dir={}", self.pod_logs.display()),
            format!("--container-log-links-dir={}", self.log_links.display()),
            format!("--cgroup-root={}", self.cgroup_root),
            // Machines that run tests may have cgroup v1 and swap.
            "--fail-cgroupv1=false".to_owned(),
            "--fail-swap-on=false".to_owned(),
            // How full the machine's disk is must not matter to the tests.
            "--image-gc-high-threshold=100".to_owned(),
            format!("--hostname-override={NAME}"),
            // What the machine has configured must not matter either.
            "--pod-network=bridge".to_owned(),
        ]
    }
}
