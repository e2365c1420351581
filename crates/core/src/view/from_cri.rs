//! The runtime's messages made into a view. Whatever a runtime leaves out or gets wrong has a harmless reading here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use oarsman_cri_types::v1;

use super::{ContainerLabel, ContainerState, ContainerView, Exit, LinuxUser, PodView, SandboxView};
use crate::ids::{FullName, PodUid, SandboxId};
use crate::labels::{
    CONTAINER_NAME_LABEL, DELETION_GRACE_ANNOTATION, HASH_ANNOTATION, MESSAGE_PATH_ANNOTATION,
    MESSAGE_POLICY_ANNOTATION, POD_NAME_LABEL, POD_NAMESPACE_LABEL, POD_UID_LABEL,
    PORTS_ANNOTATION, PRE_STOP_ANNOTATION, RESTART_COUNT_ANNOTATION, TERMINATION_GRACE_ANNOTATION,
};

/// What the runtime lists of one pod; the statuses of these are what a view is made from.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct ListedPod {
    /// The pod's name and namespace.
    pub full_name: FullName,
    pub sandboxes: Vec<v1::PodSandbox>,
    pub containers: Vec<v1::Container>,
}

/// Sandboxes and containers by id, with their state as the runtime numbers it: all that a list tells of how they are.
pub type ListedStates = BTreeMap<String, i32>;

impl ListedPod {
    /// How its sandboxes and containers are.
    pub fn states(&self) -> ListedStates {
        let sandboxes = self.sandboxes.iter().map(|sandbox| (sandbox.id.clone(), sandbox.state));
        let containers = self.containers.iter().map(|listed| (listed.id.clone(), listed.state));
        sandboxes.chain(containers).collect()
    }
}

impl PodView {
    /// How a list of the runtime showed the same sandboxes and containers.
    pub fn listed_states(&self) -> ListedStates {
        let sandbox_state = |ready| match ready {
            true => v1::PodSandboxState::SandboxReady as i32,
            false => v1::PodSandboxState::SandboxNotready as i32,
        };
        let sandboxes =
            self.sandboxes.iter().map(|it| (it.id.as_str().to_owned(), sandbox_state(it.ready)));
        let containers =
            self.containers.iter().map(|it| (it.id.as_str().to_owned(), listed_state(&it.state)));
        sandboxes.chain(containers).collect()
    }
}

/// The runtime's number of a state.
fn listed_state(state: &ContainerState) -> i32 {
    let state = match state {
        ContainerState::Created => v1::ContainerState::ContainerCreated,
        ContainerState::Running { .. } => v1::ContainerState::ContainerRunning,
        ContainerState::Exited(_) => v1::ContainerState::ContainerExited,
        ContainerState::Unknown => v1::ContainerState::ContainerUnknown,
    };
    state as i32
}

/// The runtime's lists, sorted by pod. A container belongs to the pod of its sandbox; if that is gone, to the pod it is
/// labelled with.
pub fn by_pod(
    sandboxes: Vec<v1::PodSandbox>,
    containers: Vec<v1::Container>,
) -> BTreeMap<PodUid, ListedPod> {
    let mut pods: BTreeMap<PodUid, ListedPod> = BTreeMap::new();
    let mut owners: BTreeMap<String, PodUid> = BTreeMap::new();
    for sandbox in sandboxes {
        let metadata = sandbox.metadata.clone().unwrap_or_default();
        let uid = PodUid::from(metadata.uid);
        owners.insert(sandbox.id.clone(), uid.clone());
        let full_name = FullName { name: metadata.name, namespace: metadata.namespace };
        pods.entry(uid).or_insert_with(|| ListedPod::named(full_name)).sandboxes.push(sandbox);
    }
    for container in containers {
        let labelled = container.labels.get(POD_UID_LABEL).map(|uid| PodUid::from(uid.as_str()));
        let Some(uid) = owners.get(&container.pod_sandbox_id).cloned().or(labelled) else {
            continue;
        };
        let named = || ListedPod::named(name_by_labels(&container.labels));
        pods.entry(uid).or_insert_with(named).containers.push(container);
    }
    pods
}

/// The view of a pod, from the statuses of its sandboxes and of its containers, whose sandboxes come from the list.
pub fn pod_view<'a>(
    uid: PodUid,
    full_name: FullName,
    sandboxes: impl IntoIterator<Item = &'a v1::PodSandboxStatus>,
    containers: impl IntoIterator<Item = (&'a v1::Container, &'a v1::ContainerStatus)>,
) -> PodView {
    let sandboxes = sandboxes.into_iter().map(sandbox_view).collect();
    let containers = containers.into_iter().map(|(c, status)| container_view(c, status)).collect();
    PodView { uid, full_name, sandboxes, containers }.in_order()
}

/// What the list alone tells of a pod's containers: which there are, how old they are and whether they run, but not how they ended.
pub fn listed_view(uid: &PodUid, pod: &ListedPod) -> PodView {
    let status = |listed: &v1::Container| v1::ContainerStatus {
        id: listed.id.clone(),
        metadata: listed.metadata.clone(),
        state: listed.state,
        created_at: listed.created_at,
        labels: listed.labels.clone(),
        annotations: listed.annotations.clone(),
        ..v1::ContainerStatus::default()
    };
    let containers = pod.containers.iter().map(|listed| container_view(listed, &status(listed)));
    let (uid, full_name) = (uid.clone(), pod.full_name.clone());
    PodView { uid, full_name, sandboxes: Vec::new(), containers: containers.collect() }.in_order()
}

/// The view of a sandbox, from its status.
pub fn sandbox_view(status: &v1::PodSandboxStatus) -> SandboxView {
    let linux = status.linux.as_ref().and_then(|linux| linux.namespaces.as_ref());
    let network = linux.and_then(|namespaces| namespaces.options.as_ref()).map(|o| o.network());
    SandboxView {
        id: SandboxId::from(status.id.as_str()),
        attempt: status.metadata.as_ref().map_or(0, |metadata| metadata.attempt),
        ready: v1::PodSandboxState::try_from(status.state) == Ok(v1::PodSandboxState::SandboxReady),
        created_at: moment(status.created_at),
        host_network: network == Some(v1::NamespaceMode::Node),
        network_reported: status.network.is_some(),
        ips: addresses(status),
        annotations: status.annotations.clone(),
    }
}

/// The view of a container, from its entry in the list and its status.
pub fn container_view(listed: &v1::Container, status: &v1::ContainerStatus) -> ContainerView {
    let metadata = status.metadata.clone().or_else(|| listed.metadata.clone()).unwrap_or_default();
    let name = status.labels.get(CONTAINER_NAME_LABEL).cloned().unwrap_or(metadata.name);
    let label = label(&status.annotations, metadata.attempt);
    ContainerView {
        id: status.id.as_str().into(),
        sandbox: listed.pod_sandbox_id.as_str().into(),
        name,
        image: image_name(status.image.as_ref()),
        image_ref: status.image_ref.clone(),
        created_at: moment(status.created_at),
        state: state(status),
        message_file: mounted_at(status, &label.termination_message_path),
        label,
        user: user(status),
        stop_signal: stop_signal(status),
    }
}

/// None where the runtime leaves it to the image and does not tell which one that is.
fn stop_signal(status: &v1::ContainerStatus) -> Option<String> {
    let signal = status.stop_signal();
    (signal != v1::Signal::RuntimeDefault).then(|| signal.as_str_name().to_owned())
}

impl ListedPod {
    /// Whether anything of it is labelled as that pod's, by which a reader finds it.
    pub fn is_labelled(&self, uid: &PodUid) -> bool {
        let sandboxes = self.sandboxes.iter().map(|sandbox| &sandbox.labels);
        let containers = self.containers.iter().map(|container| &container.labels);
        let mut labels = sandboxes.chain(containers).filter_map(|l| l.get(POD_UID_LABEL));
        !uid.as_str().is_empty() && labels.any(|label| label == uid.as_str())
    }

    fn named(full_name: FullName) -> Self {
        Self { full_name, sandboxes: Vec::new(), containers: Vec::new() }
    }
}

fn name_by_labels(labels: &BTreeMap<String, String>) -> FullName {
    let text = |key| labels.get(key).cloned().unwrap_or_default();
    FullName { name: text(POD_NAME_LABEL), namespace: text(POD_NAMESPACE_LABEL) }
}

fn addresses(status: &v1::PodSandboxStatus) -> Vec<String> {
    let Some(network) = &status.network else { return Vec::new() };
    let more = network.additional_ips.iter().map(|more| &more.ip);
    std::iter::once(&network.ip).chain(more).filter(|ip| !ip.is_empty()).cloned().collect()
}

/// What of this machine a container sees at a path.
fn mounted_at(status: &v1::ContainerStatus, path: &str) -> Option<PathBuf> {
    let there = |mount: &&v1::Mount| !path.is_empty() && mount.container_path == path;
    status.mounts.iter().find(there).map(|mount| PathBuf::from(&mount.host_path))
}

/// The name the spec used, where the runtime still knows it.
fn image_name(image: Option<&v1::ImageSpec>) -> String {
    let Some(image) = image else { return String::new() };
    let asked = Some(&image.user_specified_image).filter(|name| !name.is_empty());
    asked.unwrap_or(&image.image).clone()
}

fn user(status: &v1::ContainerStatus) -> Option<LinuxUser> {
    let linux = status.user.as_ref()?.linux.as_ref()?;
    Some(LinuxUser { uid: linux.uid, gid: linux.gid, groups: linux.supplemental_groups.clone() })
}

fn state(status: &v1::ContainerStatus) -> ContainerState {
    match v1::ContainerState::try_from(status.state) {
        Ok(v1::ContainerState::ContainerCreated) => ContainerState::Created,
        Ok(v1::ContainerState::ContainerRunning) => {
            ContainerState::Running { started_at: moment(status.started_at) }
        }
        Ok(v1::ContainerState::ContainerExited) => ContainerState::Exited(Exit {
            started_at: (status.started_at > 0).then(|| moment(status.started_at)),
            finished_at: moment(status.finished_at),
            code: status.exit_code,
            reason: status.reason.clone(),
            message: status.message.clone(),
        }),
        Ok(v1::ContainerState::ContainerUnknown) | Err(_) => ContainerState::Unknown,
    }
}

/// What was written on the container. One that no kubelet made has no hash, and its attempt for a restart count.
fn label(annotations: &BTreeMap<String, String>, attempt: u32) -> ContainerLabel {
    let text = |key| annotations.get(key).map(String::as_str);
    let owned = |key| text(key).unwrap_or_default().to_owned();
    ContainerLabel {
        hash: text(HASH_ANNOTATION).and_then(|hex| u32::from_str_radix(hex, 16).ok()),
        restart_count: text(RESTART_COUNT_ANNOTATION)
            .and_then(|count| count.parse().ok())
            .unwrap_or(attempt),
        termination_message_path: owned(MESSAGE_PATH_ANNOTATION),
        termination_message_policy: owned(MESSAGE_POLICY_ANNOTATION),
        deletion_grace: text(DELETION_GRACE_ANNOTATION).and_then(|grace| grace.parse().ok()),
        termination_grace: text(TERMINATION_GRACE_ANNOTATION).and_then(|grace| grace.parse().ok()),
        pre_stop: text(PRE_STOP_ANNOTATION).and_then(|json| serde_json::from_str(json).ok()),
        ports: text(PORTS_ANNOTATION)
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default(),
    }
}

/// Nanoseconds since 1970, as CRI counts.
fn moment(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
