//! What is known of sandboxes and containers on disk.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use oarsman_cri_types::v1::{ContainerConfig, Mount, NamespaceOption, PodSandboxConfig};
use serde::{Deserialize, Serialize};

use crate::oci::resources::StoredResources;
use crate::oci::user_namespace::PodUserNamespace;
use crate::oci::users::ProcessUser;

/// Where a sandbox is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SandboxPhase {
    /// Parts of it may be there. One that a crash left like this is removed.
    Making,
    /// Its shim runs.
    Ready,
    /// Its shim was killed, or it is being stopped; network and mounts may be there still.
    Lost,
    /// Nothing of it runs, and it has no network.
    Stopped,
}

/// A sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredSandbox {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) attempt: u32,
    /// In nanoseconds, as CRI has it.
    pub(crate) created_at: i64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) handler: String,
    pub(crate) hostname: String,
    pub(crate) log_directory: PathBuf,
    pub(crate) cgroup_parent: PathBuf,
    /// What it has made cannot outlive this boot.
    pub(crate) boot_id: String,
    pub(crate) phase: SandboxPhase,
    /// Modes of the network, pid and IPC namespaces, by CRI's numbers.
    pub(crate) modes: [i32; 3],
    pub(crate) addresses: Vec<IpAddr>,
    /// None for the node's.
    #[serde(default)]
    pub(crate) user_namespace: Option<PodUserNamespace>,
}

impl StoredSandbox {
    /// The name that no other sandbox may have.
    pub(crate) fn full_name(&self) -> String {
        format!("{}_{}_{}_{}", self.name, self.namespace, self.uid, self.attempt)
    }

    pub(crate) fn options(&self) -> NamespaceOption {
        let [network, pid, ipc] = self.modes;
        let userns_options = self.user_namespace.as_ref().map(PodUserNamespace::shown);
        NamespaceOption { network, pid, ipc, userns_options, ..NamespaceOption::default() }
    }

    pub(crate) fn pod(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The namespaces that a sandbox asks for.
pub(crate) fn sandbox_options(config: &PodSandboxConfig) -> NamespaceOption {
    let context = config.linux.as_ref().and_then(|linux| linux.security_context.as_ref());
    context.and_then(|context| context.namespace_options.clone()).unwrap_or_default()
}

/// A container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredContainer {
    pub(crate) id: String,
    pub(crate) sandbox: String,
    pub(crate) name: String,
    pub(crate) attempt: u32,
    pub(crate) created_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) exit: Option<StoredExit>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// As it was asked for.
    pub(crate) image: String,
    pub(crate) image_id: String,
    pub(crate) log_path: PathBuf,
    pub(crate) mounts: Vec<StoredMount>,
    pub(crate) resources: StoredResources,
    pub(crate) user: ProcessUser,
    pub(crate) stop_signal: i32,
    pub(crate) stdin: bool,
    pub(crate) stdin_once: bool,
    pub(crate) tty: bool,
    pub(crate) cgroup: PathBuf,
}

impl StoredContainer {
    /// The name that no other container may have.
    pub(crate) fn full_name(&self) -> String {
        container_name(&self.sandbox, &self.name, self.attempt)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.started_at.is_some() && self.exit.is_none()
    }
}

/// The name of a container of that sandbox.
pub(crate) fn container_name(sandbox: &str, name: &str, attempt: u32) -> String {
    format!("{name}_{sandbox}_{attempt}")
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredExit {
    pub(crate) code: i32,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) finished_at: i64,
}

/// A mount as a status tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredMount {
    container_path: String,
    host_path: String,
    readonly: bool,
    recursive_read_only: bool,
    propagation: i32,
}

impl StoredMount {
    pub(crate) fn all_of(config: &ContainerConfig) -> Vec<Self> {
        let stored = |mount: &Mount| Self {
            container_path: mount.container_path.clone(),
            host_path: mount.host_path.clone(),
            readonly: mount.readonly,
            recursive_read_only: mount.recursive_read_only,
            propagation: mount.propagation,
        };
        config.mounts.iter().map(stored).collect()
    }

    pub(crate) fn shown(&self) -> Mount {
        Mount {
            container_path: self.container_path.clone(),
            host_path: self.host_path.clone(),
            readonly: self.readonly,
            recursive_read_only: self.recursive_read_only,
            propagation: self.propagation,
            ..Mount::default()
        }
    }
}
