//! Settings of the kernel that belong to a pod's namespaces.

use std::path::{Path, PathBuf};

use super::SpecError;

/// The namespace that a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SysctlNamespace {
    Network,
    Ipc,
}

/// A setting that is one of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodSysctl {
    pub(crate) namespace: SysctlNamespace,
    pub(crate) path: PathBuf,
    pub(crate) value: String,
}

/// Whether a pod has namespaces of its own, which its settings can be set in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnNamespaces {
    pub(crate) network: bool,
    pub(crate) ipc: bool,
}

/// The settings of a pod; one that would be the node's is refused.
pub(crate) fn sysctls<'a>(
    asked: impl IntoIterator<Item = (&'a String, &'a String)>,
    own: OwnNamespaces,
) -> Result<Vec<PodSysctl>, SpecError> {
    asked.into_iter().map(|(name, value)| sysctl(name, value, own)).collect()
}

fn sysctl(name: &str, value: &str, own: OwnNamespaces) -> Result<PodSysctl, SpecError> {
    let refused = |why| SpecError::Sysctl { name: name.to_owned(), why };
    // Names with slashes may have dots in a part, such as that of a link.
    let parts: Vec<&str> = match name.split_once('/') {
        Some(_) => name.split('/').collect(),
        None => name.split('.').collect(),
    };
    if parts.iter().any(|part| part.is_empty() || *part == "." || *part == "..") {
        return Err(refused("it is no name of a setting"));
    }
    let is_ipc_kernel =
        |name: &str| ["shm", "msg"].iter().any(|prefix| name.starts_with(prefix)) || name == "sem";
    let namespace = match parts.as_slice() {
        ["net", ..] if own.network => SysctlNamespace::Network,
        ["net", ..] => return Err(refused("the pod uses the node's network")),
        ["kernel", last] if is_ipc_kernel(last) && own.ipc => SysctlNamespace::Ipc,
        ["fs", "mqueue", _] if own.ipc => SysctlNamespace::Ipc,
        ["kernel", last] if is_ipc_kernel(last) => {
            return Err(refused("the pod uses the node's IPC"));
        }
        ["fs", "mqueue", _] => return Err(refused("the pod uses the node's IPC")),
        _ => return Err(refused("it belongs to no namespace")),
    };
    let path = parts.iter().fold(Path::new("/proc/sys").to_owned(), |path, part| path.join(part));
    Ok(PodSysctl { namespace, path, value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_the_pods_namespaces_can_be_set() {
        let all = OwnNamespaces { network: true, ipc: true };
        let none = OwnNamespaces { network: false, ipc: false };
        let rows = [
            ("net.core.somaxconn", all, Some("/proc/sys/net/core/somaxconn")),
            (
                "net/ipv4/conf/eth0.1/forwarding",
                all,
                Some("/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
            ),
            ("kernel.shm_rmid_forced", all, Some("/proc/sys/kernel/shm_rmid_forced")),
            ("kernel.sem", all, Some("/proc/sys/kernel/sem")),
            ("fs.mqueue.msg_max", all, Some("/proc/sys/fs/mqueue/msg_max")),
            ("net.core.somaxconn", none, None),
            ("kernel.msgmax", none, None),
            ("fs.mqueue.msg_max", none, None),
            ("kernel.panic", all, None),
            ("vm.overcommit_memory", all, None),
            ("net/../kernel/panic", all, None),
            ("net..x", all, None),
        ];
        for (name, own, wanted) in rows {
            let found = sysctl(name, "1", own).ok().map(|found| found.path);
            assert_eq!(found, wanted.map(PathBuf::from), "{name}");
        }
    }
}
