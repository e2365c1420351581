//! Which namespaces a container has of its own, shares with its pod or another container, or takes from the node.

use std::path::{Path, PathBuf};

use oarsman_cri_types::v1::{NamespaceMode, NamespaceOption};
use oci_spec::OciSpecError;
use oci_spec::runtime::{LinuxNamespace, LinuxNamespaceBuilder, LinuxNamespaceType};

use super::SpecError;

/// The files of the namespaces that a container may join.
#[derive(Clone, Debug, Default)]
pub(crate) struct JoinableNamespaces {
    /// Of the pod; none when it uses the node's.
    pub(crate) network: Option<PathBuf>,
    /// Of the pod; none when it uses the node's.
    pub(crate) ipc: Option<PathBuf>,
    /// Of the pod; none when it uses the node's.
    pub(crate) uts: Option<PathBuf>,
    /// Of the pod or of the target container, whichever the options ask for.
    pub(crate) pid: Option<PathBuf>,
    /// The process of the target container; none where there is no target.
    pub(crate) target: Option<u32>,
    /// Of the pod; none when it uses the node's. The others belong to it.
    pub(crate) user: Option<PathBuf>,
}

/// The namespaces of a container. Kinds that are not listed are the node's.
pub(crate) fn namespaces(
    options: &NamespaceOption,
    joinable: &JoinableNamespaces,
    own_cgroup: bool,
) -> Result<Vec<LinuxNamespace>, SpecError> {
    let mut all = vec![namespace(LinuxNamespaceType::Mount, None)?];
    let shared = [
        (LinuxNamespaceType::User, &joinable.user),
        (LinuxNamespaceType::Network, &joinable.network),
        (LinuxNamespaceType::Uts, &joinable.uts),
    ];
    for (kind, path) in shared {
        if let Some(path) = path {
            all.push(namespace(kind, Some(path))?);
        }
    }
    match options.ipc() {
        NamespaceMode::Container => all.push(namespace(LinuxNamespaceType::Ipc, None)?),
        NamespaceMode::Node => {}
        NamespaceMode::Pod | NamespaceMode::Target => {
            if let Some(path) = &joinable.ipc {
                all.push(namespace(LinuxNamespaceType::Ipc, Some(path))?);
            }
        }
    }
    match options.pid() {
        NamespaceMode::Node => {}
        NamespaceMode::Container => all.push(namespace(LinuxNamespaceType::Pid, None)?),
        NamespaceMode::Pod | NamespaceMode::Target => {
            all.push(namespace(LinuxNamespaceType::Pid, joinable.pid.as_deref())?);
        }
    }
    if own_cgroup {
        all.push(namespace(LinuxNamespaceType::Cgroup, None)?);
    }
    Ok(all)
}

fn namespace(
    kind: LinuxNamespaceType,
    path: Option<&Path>,
) -> Result<LinuxNamespace, OciSpecError> {
    let namespace = LinuxNamespaceBuilder::default().typ(kind);
    match path {
        Some(path) => namespace.path(path),
        None => namespace,
    }
    .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(options: &NamespaceOption, joinable: &JoinableNamespaces) -> Vec<String> {
        let all = namespaces(options, joinable, false).unwrap();
        let path =
            |one: &LinuxNamespace| one.path().as_ref().map(|path| path.display().to_string());
        all.iter().map(|one| format!("{}={}", one.typ(), path(one).unwrap_or_default())).collect()
    }

    #[test]
    fn namespaces_are_the_pods_the_containers_a_targets_or_the_nodes() {
        let joinable = JoinableNamespaces {
            network: Some("/n".into()),
            ipc: Some("/i".into()),
            uts: Some("/u".into()),
            pid: Some("/p".into()),
            target: None,
            user: None,
        };
        let options = |pid, ipc| {
            let mut options = NamespaceOption::default();
            options.set_pid(pid);
            options.set_ipc(ipc);
            options
        };
        use NamespaceMode::{Container, Node, Pod, Target};
        let rows = [
            (Container, Pod, vec!["mnt=", "net=/n", "uts=/u", "ipc=/i", "pid="]),
            (Pod, Container, vec!["mnt=", "net=/n", "uts=/u", "ipc=", "pid=/p"]),
            (Target, Node, vec!["mnt=", "net=/n", "uts=/u", "pid=/p"]),
            (Node, Node, vec!["mnt=", "net=/n", "uts=/u"]),
        ];
        for (pid, ipc, wanted) in rows {
            assert_eq!(shown(&options(pid, ipc), &joinable), wanted);
        }
        let mapped = JoinableNamespaces { user: Some("/s".into()), ..joinable };
        assert_eq!(shown(&options(Node, Node), &mapped), ["mnt=", "user=/s", "net=/n", "uts=/u"]);
        let of_node = JoinableNamespaces::default();
        assert_eq!(shown(&options(Node, Node), &of_node), ["mnt="]);
        assert_eq!(namespaces(&options(Node, Node), &of_node, true).unwrap().len(), 2);
    }
}
