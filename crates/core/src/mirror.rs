//! Mirror pods: the reflections of static pods in the API server, so that a cluster sees what it did not ask for.
//!
//! A mirror is never run and never obeyed: deleting one only has it made again. [`MirrorPods`] knows which static pods run here and
//! which mirrors there are, and says what is to be done about the difference; [`mirror_pod`] is how a mirror looks.

mod pods;
#[cfg(test)]
mod tests;
mod times;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::pod::{HASH_ANNOTATION, MIRROR_ANNOTATION, PodExt};

pub use pods::{MirrorAction, MirrorPods, MirrorStatus};

/// How a static pod is shown to the API server. The node, of this UID, owns it: without the node there is no mirror.
pub fn mirror_pod(pod: &Pod, node_uid: &str) -> Pod {
    let mut annotations = pod.metadata.annotations.clone().unwrap_or_default();
    annotations.insert(MIRROR_ANNOTATION.to_owned(), hash(pod).to_owned());
    let node = pod.spec().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            labels: pod.metadata.labels.clone(),
            annotations: Some(annotations),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: node,
                uid: node_uid.to_owned(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        },
        spec: pod.spec.clone(),
        status: None,
    }
}

/// Whether a mirror shows this very pod, and will go on to.
fn is_mirror_pod_of(mirror: &Pod, pod: &Pod) -> bool {
    !mirror.is_deleting() && mirror.annotation(MIRROR_ANNOTATION) == Some(hash(pod))
}

fn hash(pod: &Pod) -> &str {
    pod.annotation(HASH_ANNOTATION).unwrap_or_default()
}
