//! Which sysctls a pod may set: those that are safe, and those that the administrator has allowed.

use k8s_openapi::api::core::v1::Pod;

use super::handler::Rejection;
use crate::api::sysctl::dotted;
use crate::pod::PodExt;

/// A version of the kernel: major and minor.
type KernelVersion = (u32, u32);

/// Sysctls of a namespace of the pod's own that cannot harm the node or its other pods, and the kernel since when that is so.
const SAFE: [(&str, KernelVersion); 12] = [
    ("kernel.shm_rmid_forced", (0, 0)),
    ("net.ipv4.ip_local_port_range", (0, 0)),
    ("net.ipv4.tcp_syncookies", (0, 0)),
    ("net.ipv4.ping_group_range", (0, 0)),
    ("net.ipv4.ip_unprivileged_port_start", (0, 0)),
    ("net.ipv4.ip_local_reserved_ports", (3, 16)),
    ("net.ipv4.tcp_keepalive_time", (4, 5)),
    ("net.ipv4.tcp_fin_timeout", (4, 6)),
    ("net.ipv4.tcp_keepalive_intvl", (4, 5)),
    ("net.ipv4.tcp_keepalive_probes", (4, 5)),
    ("net.ipv4.tcp_rmem", (4, 15)),
    ("net.ipv4.tcp_wmem", (4, 15)),
];

/// The namespace that a sysctl belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SysctlNamespace {
    Ipc,
    Net,
}

/// Which sysctls pods may set on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SysctlAllowlist {
    patterns: Vec<String>,
}

impl SysctlAllowlist {
    /// The safe ones of that kernel (`uname -r`), and those of `allowedUnsafeSysctls`.
    pub fn new(kernel: &str, allowed_unsafe: &[String]) -> Self {
        let kernel = version(kernel);
        let safe = SAFE.iter().filter(|(_, since)| kernel >= *since);
        let safe = safe.map(|(name, _)| (*name).to_owned());
        let patterns = safe.chain(allowed_unsafe.iter().map(|pattern| dotted(pattern))).collect();
        Self { patterns }
    }

    /// Rejects a pod with a sysctl that is not allowed, or that belongs to a namespace of the host.
    pub(super) fn check(&self, pod: &Pod) -> Result<(), Rejection> {
        let spec = pod.spec();
        let context = spec.and_then(|spec| spec.security_context.as_ref());
        let host_ipc = spec.and_then(|spec| spec.host_ipc).unwrap_or_default();
        for sysctl in context.and_then(|context| context.sysctls.as_ref()).into_iter().flatten() {
            let name = dotted(&sysctl.name);
            self.check_one(&name, pod.host_network(), host_ipc).map_err(|detail| {
                Rejection::new("SysctlForbidden", format!("forbidden sysctl: \"{name}\" {detail}"))
            })?;
        }
        Ok(())
    }

    fn check_one(
        &self,
        name: &str,
        host_network: bool,
        host_ipc: bool,
    ) -> Result<(), &'static str> {
        if !self.patterns.iter().any(|pattern| matches(pattern, name)) {
            return Err("not allowlisted");
        }
        match namespace(name) {
            Some(SysctlNamespace::Ipc) if host_ipc => Err("not allowed with host ipc enabled"),
            Some(SysctlNamespace::Net) if host_network => Err("not allowed with host net enabled"),
            _ => Ok(()),
        }
    }
}

/// Of `allowedUnsafeSysctls`, those that would let a pod change the node: they belong to no namespace of a pod.
pub fn without_namespace(allowed_unsafe: &[String]) -> Vec<&str> {
    let prefix = |pattern: &str| dotted(pattern).trim_end_matches('*').to_owned();
    let patterns = allowed_unsafe.iter().map(String::as_str);
    patterns.filter(|pattern| namespace(&prefix(pattern)).is_none()).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

fn namespace(name: &str) -> Option<SysctlNamespace> {
    const IPC: [&str; 3] = ["kernel.shm", "kernel.msg", "fs.mqueue."];
    if name == "kernel.sem" || IPC.iter().any(|prefix| name.starts_with(prefix)) {
        return Some(SysctlNamespace::Ipc);
    }
    name.starts_with("net.").then_some(SysctlNamespace::Net)
}

/// Of a kernel whose version cannot be read only those that are safe on all are.
fn version(kernel: &str) -> KernelVersion {
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (0, 0),
    }
}
