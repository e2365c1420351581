//! What the machine is meant for: what is a problem for a kubelet may be none for `oarsman run`.

use std::path::PathBuf;

/// What the machine is held against.
#[derive(Clone, Debug)]
pub(crate) struct Requirements {
    /// Whether it is to be a node, or to run pods as a guest.
    pub(crate) is_node: bool,
    /// The socket of the runtime, if one was named.
    pub(crate) runtime: Option<String>,
    pub(crate) root: PathBuf,
    pub(crate) pod_logs: PathBuf,
    /// None to give pods nothing of it.
    pub(crate) resolv_conf: Option<PathBuf>,
    /// The ports of the node's server, with the names of their fields.
    pub(crate) ports: Vec<(&'static str, u16)>,
    /// Used when the runtime does not tell.
    pub(crate) systemd_cgroups: bool,
    pub(crate) fails_on_swap: bool,
    pub(crate) fails_on_cgroup_v1: bool,
    /// Whether the kernel's settings must be right already, because nobody may change them.
    pub(crate) protects_kernel: bool,
}

impl Requirements {
    /// To run pods as a guest, below this root directory.
    pub(crate) fn for_guest(root: PathBuf, runtime: Option<String>) -> Self {
        Self {
            is_node: false,
            runtime,
            pod_logs: root.join("logs"),
            root,
            resolv_conf: Some("/etc/resolv.conf".into()),
            ports: vec![("port", 10250), ("healthzPort", 10248)],
            systemd_cgroups: false,
            fails_on_swap: true,
            fails_on_cgroup_v1: true,
            protects_kernel: false,
        }
    }
}
