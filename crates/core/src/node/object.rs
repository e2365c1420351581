//! The Node object to register, and what is corrected in one that the API server already has.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSpec, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::info::OS;
use super::{MachineInfo, NodeProfile, NodeStatusInput, status};

const HOSTNAME: &str = "kubernetes.io/hostname";
/// Which operating system a node runs, and a pod is for.
pub(crate) const OS_LABEL: &str = "kubernetes.io/os";
const ARCH_LABEL: &str = "kubernetes.io/arch";
const BETA_OS_LABEL: &str = "beta.kubernetes.io/os";
const BETA_ARCH_LABEL: &str = "beta.kubernetes.io/arch";

/// Labels that a node sets right when it finds itself registered; others were for its first day.
const DEFAULT_LABELS: [&str; 11] = [
    HOSTNAME,
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    OS_LABEL,
    ARCH_LABEL,
    BETA_OS_LABEL,
    BETA_ARCH_LABEL,
];

/// Says that a controller attaches the node's volumes.
const CONTROLLER_ATTACHES: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

/// Keeps pods away until the cloud has had its say.
const NO_CLOUD_YET: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The object that a node registers.
pub fn registered(input: &NodeStatusInput<'_>) -> Node {
    let NodeProfile { name, provider_id, controller_attaches, .. } = input.profile;
    let annotations =
        controller_attaches.then(|| (CONTROLLER_ATTACHES.to_owned(), "true".to_owned()));
    let taints = taints(input.profile);
    let bare = Node {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(labels(input.profile, input.machine)),
            annotations: annotations.map(|annotation| BTreeMap::from([annotation])),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: provider_id.clone(),
            taints: Some(taints).filter(|taints| !taints.is_empty()),
            ..NodeSpec::default()
        }),
        status: None,
    };
    status::next(input, &bare)
}

/// The same object with what must be right from the first day on: labels that describe it, who attaches its volumes,
/// and that it has no devices: no plugin has registered them with this agent, and until one does a pod that asks for them is refused.
pub fn reconciled(input: &NodeStatusInput<'_>, existing: &Node) -> Node {
    let mut node = existing.clone();
    let ours = labels(input.profile, input.machine);
    let ours = ours.into_iter().filter(|(key, _)| DEFAULT_LABELS.contains(&key.as_str()));
    let labels = node.metadata.labels.get_or_insert_default();
    for (key, value) in ours {
        if value.is_empty() {
            labels.remove(&key);
        } else {
            labels.insert(key, value);
        }
    }
    let attaches = input.profile.controller_attaches.then_some("true");
    annotate(&mut node.metadata, CONTROLLER_ATTACHES, attaches);
    node.status.iter_mut().for_each(status::zero_extended_resources);
    status::next(input, &node)
}

/// Sets an annotation, or takes it away.
pub(super) fn annotate(metadata: &mut ObjectMeta, key: &str, value: Option<&str>) {
    match (value, &mut metadata.annotations) {
        (Some(value), annotations) => {
            annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        }
        (None, Some(annotations)) => drop(annotations.remove(key)),
        (None, None) => {}
    }
}

/// The labels for operating system and architecture. They are always corrected, because schedulers choose nodes by them.
pub(super) fn label_system(metadata: &mut ObjectMeta, machine: &MachineInfo) {
    metadata.labels.get_or_insert_default().extend(system_labels(machine));
}

fn labels(profile: &NodeProfile, machine: &MachineInfo) -> BTreeMap<String, String> {
    let rows = [
        (HOSTNAME, profile.name.as_str()),
        (OS_LABEL, OS),
        (ARCH_LABEL, &machine.architecture),
        (BETA_OS_LABEL, OS),
        (BETA_ARCH_LABEL, &machine.architecture),
    ];
    let mut labels: BTreeMap<String, String> =
        rows.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    labels.extend(profile.labels.clone());
    labels
}

/// Whether every report corrects this label.
pub(crate) fn is_system_label(key: &str) -> bool {
    [OS_LABEL, ARCH_LABEL].contains(&key)
}

/// The labels that a node has once it has reported its status.
pub(crate) fn reported_labels(
    profile: &NodeProfile,
    machine: &MachineInfo,
) -> BTreeMap<String, String> {
    let mut labels = labels(profile, machine);
    labels.extend(system_labels(machine));
    labels
}

fn system_labels(machine: &MachineInfo) -> [(String, String); 2] {
    [(OS_LABEL.to_owned(), OS.to_owned()), (ARCH_LABEL.to_owned(), machine.architecture.clone())]
}

/// The taints that a node registers with.
pub(crate) fn taints(profile: &NodeProfile) -> Vec<Taint> {
    let until_the_cloud_spoke = profile.has_cloud.then(|| Taint {
        key: NO_CLOUD_YET.to_owned(),
        value: Some("true".to_owned()),
        effect: "NoSchedule".to_owned(),
        time_added: None,
    });
    profile.taints.iter().cloned().chain(until_the_cloud_spoke).collect()
}
