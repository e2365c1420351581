//! Inspects pods through the runtime and the kernel: assertions never rely on what the agent says.

mod pods;
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oarsman_cri::{CriError, Deadlines, InfoTarget, RemoteRuntime, Runtime};
use oarsman_cri_types::v1::{ContainerFilter, ContainerStatus};
use oarsman_host::{cgroups, mounts, processes};
use oarsman_rig::Rig;

use crate::agent_process::{EMBEDDED_SOCKET, NAME};
pub use pods::{ObservedContainer, ObservedLogLine, ObservedPod, ObservedSandbox, longest_gap};
pub use wait::{always, eventually};

/// Reads from the runtime, past any proxy, and from the kernel.
#[derive(Clone)]
pub struct RuntimeInspector {
    runtimes: InspectedRuntimes,
    cgroup_parent: PathBuf,
}

/// What is read from.
#[derive(Clone)]
enum InspectedRuntimes {
    OfRig(Box<RemoteRuntime>),
    /// Those of the agents whose root directories are below this directory, each by the socket that its agent serves.
    Embedded(PathBuf),
}

impl RuntimeInspector {
    /// An inspector of that rig.
    ///
    /// # Errors
    /// Never, as long as the rig's directory has a plain name.
    pub fn new(rig: &Rig) -> Result<Self> {
        let runtimes = match rig.flavour().has_socket() {
            true => InspectedRuntimes::OfRig(Box::new(rig.client()?)),
            false => InspectedRuntimes::Embedded(rig.agents()),
        };
        Ok(Self { runtimes, cgroup_parent: rig.cgroup_parent().into() })
    }

    /// The runtimes that there are. The socket of an agent that was killed is there until its next start, and does not answer; that of one that
    /// has ended in order is gone, as its pods should be.
    ///
    /// # Errors
    /// When the directory of agents cannot be read.
    pub fn clients(&self) -> Result<Vec<RemoteRuntime>> {
        let agents = match &self.runtimes {
            InspectedRuntimes::OfRig(client) => return Ok(vec![client.as_ref().clone()]),
            InspectedRuntimes::Embedded(agents) => agents,
        };
        let mut clients = Vec::new();
        for agent in fs::read_dir(agents)? {
            let socket = agent?.path().join(EMBEDDED_SOCKET);
            if socket.exists() {
                let address = socket.to_string_lossy();
                clients.push(RemoteRuntime::new(&address, None, Deadlines::default())?);
            }
        }
        Ok(clients)
    }

    /// All pods that have a sandbox, by name.
    ///
    /// # Errors
    /// When containerd does not answer.
    pub async fn pods(&self) -> Result<Vec<ObservedPod>> {
        let (mut sandboxes, mut containers) = (Vec::new(), Vec::new());
        for client in self.clients()? {
            let listed = client.list_pod_sandboxes(None).await?;
            sandboxes.extend(listed.into_iter().map(ObservedSandbox::from));
            containers.extend(containers_of(&client).await?);
        }
        let uids: BTreeSet<(&str, &str)> =
            sandboxes.iter().map(|sandbox| (sandbox.name.as_str(), sandbox.uid.as_str())).collect();
        Ok(uids
            .iter()
            .map(|(_, uid)| ObservedPod::assemble(uid, &sandboxes, &containers))
            .collect())
    }

    /// The pod of that name, or of the static pod of that name; empty when it has no sandbox. Of
    /// several of that name, the one whose sandbox is newest.
    ///
    /// # Errors
    /// When containerd does not answer.
    pub async fn pod(&self, name: &str) -> Result<ObservedPod> {
        let of_node = format!("{name}-{NAME}");
        let pods = self.pods().await?;
        let of_name = pods.into_iter().filter(|pod| pod.is_named(name) || pod.is_named(&of_node));
        Ok(of_name.max_by_key(ObservedPod::created).unwrap_or_default())
    }

    /// A container's status as the runtime gives it; none when it is gone.
    ///
    /// # Errors
    /// When containerd does not answer.
    pub async fn status(&self, container: &str) -> Result<Option<ContainerStatus>> {
        for client in self.clients()? {
            if let Some(status) = unless_gone(client.container_status(container).await)? {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// The first process of a container and all its descendants; none when it has ended.
    ///
    /// # Errors
    /// When containerd does not answer, or does not give the pid.
    pub async fn processes(&self, container: &str) -> Result<Vec<u32>> {
        let Some(info) = self.details(container).await? else { return Ok(Vec::new()) };
        let details: serde_json::Value =
            serde_json::from_str(info.get("info").context("containerd tells no details")?)?;
        let pid = details["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let first = pid.filter(|pid| *pid != 0 && processes::find(*pid).is_some());
        Ok(processes::family(&processes::list()?, first.as_slice()))
    }

    async fn details(&self, container: &str) -> Result<Option<BTreeMap<String, String>>> {
        for client in self.clients()? {
            let info = unless_gone(client.info(InfoTarget::Container(container)).await)?;
            if info.is_some() {
                return Ok(info);
            }
        }
        Ok(None)
    }

    /// The control groups below the rig's that are a pod's, by its UID in their names; each once,
    /// however many hierarchies have it.
    ///
    /// # Errors
    /// When the hierarchies cannot be read.
    pub fn groups(&self, uid: &str) -> Result<BTreeSet<PathBuf>> {
        let is_pods = |group: &PathBuf| {
            let name = group.file_name().unwrap_or_default().to_string_lossy();
            group.starts_with(&self.cgroup_parent)
                && (name.contains(uid) || name.contains(&uid.replace('-', "_")))
        };
        let mut found = BTreeSet::new();
        for hierarchy in cgroups::hierarchies(&mounts::current()?) {
            found.extend(hierarchy.groups()?.into_iter().filter(is_pods));
        }
        Ok(found)
    }

    /// What a file of a control group holds, such as `memory.limit_in_bytes`, from whichever
    /// hierarchy has it.
    ///
    /// # Errors
    /// When no hierarchy has such a file for that group.
    pub fn group_value(&self, group: &Path, file: &str) -> Result<String> {
        let hierarchies = cgroups::hierarchies(&mounts::current()?);
        let paths = hierarchies.iter().map(|hierarchy| hierarchy.directory(group).join(file));
        let mut values = paths.filter_map(|path| fs::read_to_string(path).ok());
        let value = values.next();
        let value = value.with_context(|| format!("no {file} in cgroup {}", group.display()))?;
        Ok(value.trim_end().to_owned())
    }
}

async fn containers_of(client: &RemoteRuntime) -> Result<Vec<ObservedContainer>> {
    let mut seen = Vec::new();
    for container in client.list_containers(None::<ContainerFilter>).await? {
        // The container may be removed between the list and this call.
        if let Some(status) = unless_gone(client.container_status(&container.id).await)? {
            seen.push(ObservedContainer::new(container.pod_sandbox_id, status));
        }
    }
    Ok(seen)
}

fn unless_gone<T>(answer: Result<T, CriError>) -> Result<Option<T>> {
    match answer {
        Ok(thing) => Ok(Some(thing)),
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
