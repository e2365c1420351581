//! The requirements that a machine is checked against: a problem for a kubelet may be none for `oarsman run`.

use std::path::PathBuf;

use crate::runtime_endpoint::NamedRuntime;

/// The requirements on the machine.
#[derive(Clone, Debug)]
pub(crate) struct Requirements {
    /// Whether it is to be a node, or only to run pods by `oarsman run`.
    pub(crate) is_node: bool,
    /// The runtime that was named, or is the default.
    pub(crate) runtime: NamedRuntime,
    pub(crate) root: PathBuf,
    pub(crate) pod_logs: PathBuf,
    /// The resolv.conf that pods get; none to give pods nothing of it.
    pub(crate) resolv_conf: Option<PathBuf>,
    /// The ports of the node's server, with the names of their fields.
    pub(crate) ports: Vec<(&'static str, u16)>,
    /// The cgroup driver for a runtime that does not report its own.
    pub(crate) systemd_cgroups: bool,
    pub(crate) fails_on_swap: bool,
    pub(crate) fails_on_cgroup_v1: bool,
    /// Whether the kernel's settings must be right already, because the kubelet must not change them.
    pub(crate) protects_kernel: bool,
}

impl Requirements {
    /// The requirements of `oarsman run` below this root directory.
    pub(crate) fn for_run_mode(root: PathBuf, runtime: NamedRuntime) -> Self {
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
