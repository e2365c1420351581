//! What we write on sandboxes and containers, so that any kubelet that starts later, ours or the Go one, can pick them up.

mod limits;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};

use limits::{bounded, is_short};

use crate::hash::container_hash;
use crate::pod::PodExt;

/// The pod's name, on sandbox and container.
pub const POD_NAME_LABEL: &str = "io.kubernetes.pod.name";
/// The pod's namespace, on sandbox and container.
pub const POD_NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";
/// The pod's UID, on sandbox and container.
pub const POD_UID_LABEL: &str = "io.kubernetes.pod.uid";
/// The container's name in the spec.
pub const CONTAINER_NAME_LABEL: &str = "io.kubernetes.container.name";

/// Hash of the definition, in hex.
pub const HASH_ANNOTATION: &str = "io.kubernetes.container.hash";
/// How often a container of this name was started before.
pub const RESTART_COUNT_ANNOTATION: &str = "io.kubernetes.container.restartCount";
/// Where the termination message is written.
pub const MESSAGE_PATH_ANNOTATION: &str = "io.kubernetes.container.terminationMessagePath";
/// What to do when none was written.
pub const MESSAGE_POLICY_ANNOTATION: &str = "io.kubernetes.container.terminationMessagePolicy";
/// The preStop hook, as JSON.
pub const PRE_STOP_ANNOTATION: &str = "io.kubernetes.container.preStopHandler";
/// The ports, as JSON.
pub const PORTS_ANNOTATION: &str = "io.kubernetes.container.ports";
/// The pod's deletion grace period in seconds.
pub const DELETION_GRACE_ANNOTATION: &str = "io.kubernetes.pod.deletionGracePeriod";
/// The pod's termination grace period in seconds.
pub const TERMINATION_GRACE_ANNOTATION: &str = "io.kubernetes.pod.terminationGracePeriod";

/// On every sandbox we make: the root directory of the agent that made it.
pub const ROOT_ANNOTATION: &str = "oarsman.io/root";

/// Names and values.
type Texts = BTreeMap<String, String>;

/// A sandbox's labels: the pod's, as far as they are bounded, and the pod's name, namespace and UID.
pub fn sandbox_labels(pod: &Pod) -> Texts {
    let mut labels = bounded(pod.metadata.labels.as_ref());
    labels.append(&mut pod_labels(pod));
    labels
}

/// A sandbox's annotations: the pod's, word for word, as far as they are bounded.
pub fn sandbox_annotations(pod: &Pod) -> Texts {
    bounded(pod.metadata.annotations.as_ref())
}

/// A container's labels: name, namespace and UID of its pod, and its own name.
pub fn container_labels(pod: &Pod, spec: &Container) -> Texts {
    let mut labels = pod_labels(pod);
    labels.insert(CONTAINER_NAME_LABEL.to_owned(), spec.name.clone());
    labels
}

/// A container's annotations: what device plugins ask for, and over it what we need to know later.
pub fn container_annotations(
    pod: &Pod,
    spec: &Container,
    restart_count: u32,
    of_devices: Texts,
) -> Texts {
    let hooks = spec.lifecycle.as_ref();
    let pre_stop = hooks.and_then(|hooks| hooks.pre_stop.as_ref());
    let pre_stop =
        pre_stop.and_then(|hook| serde_json::to_string(hook).ok()).filter(|text| is_short(text));
    let ports = spec.ports.as_ref().filter(|ports| !ports.is_empty());
    let ports =
        ports.and_then(|ports| serde_json::to_string(ports).ok()).filter(|text| is_short(text));
    let grace = pod.spec().and_then(|spec| spec.termination_grace_period_seconds);
    let deletion_grace = pod.metadata.deletion_grace_period_seconds;
    let text = |text: &Option<String>| {
        Some(text.clone().unwrap_or_default()).filter(|text| is_short(text))
    };
    let ours = [
        (HASH_ANNOTATION, Some(format!("{:x}", container_hash(spec)))),
        (RESTART_COUNT_ANNOTATION, Some(restart_count.to_string())),
        (MESSAGE_PATH_ANNOTATION, text(&spec.termination_message_path)),
        (MESSAGE_POLICY_ANNOTATION, text(&spec.termination_message_policy)),
        (DELETION_GRACE_ANNOTATION, deletion_grace.map(|seconds| seconds.to_string())),
        (TERMINATION_GRACE_ANNOTATION, grace.map(|seconds| seconds.to_string())),
        (PRE_STOP_ANNOTATION, pre_stop),
        (PORTS_ANNOTATION, ports),
    ];
    let ours = ours.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    of_devices.into_iter().chain(ours).collect()
}

fn pod_labels(pod: &Pod) -> Texts {
    let name = pod.full_name();
    BTreeMap::from([
        (POD_NAME_LABEL.to_owned(), name.name),
        (POD_NAMESPACE_LABEL.to_owned(), name.namespace),
        (POD_UID_LABEL.to_owned(), pod.uid().to_string()),
    ])
}
