//! Adoption of static pods that another kubelet started.
//!
//! A UID made from content cannot be the same in two implementations. So at start we look for a pod that runs under
//! another UID and is identical in everything that can be compared, and keep its UID: nothing restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::hash::container_hash;
use crate::ids::PodUid;
use crate::labels::ROOT_ANNOTATION;
use crate::pod::{HASH_ANNOTATION, PodExt, SEEN_ANNOTATION, SOURCE_ANNOTATION};
use crate::sources::Source;
use crate::view::{ContainerView, PodView, SandboxView};

use super::with_uid;

/// On a pod that goes by another kubelet's UID: the UID we would have made, which tells whether its manifest is
/// still the same when we start again.
pub const MADE_UID_ANNOTATION: &str = "oarsman.io/made-uid";

/// Which static pods go by the UID under which another kubelet started them: ours to theirs, by source.
///
/// It is filled once, at start: a manifest that is edited afterwards has another made UID, is found in here no
/// longer, and becomes a new pod as it should.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoptions {
    running: BTreeMap<Source, BTreeMap<PodUid, PodUid>>,
}

impl Adoptions {
    /// Looks, at start, for each prepared pod of a source among what the runtime holds.
    pub fn learn(&mut self, source: Source, pods: &[Arc<Pod>], held: &[PodView]) {
        let found = pods.iter().filter_map(|pod| {
            let view = held.iter().find(|view| is_this_pod(source, pod, view))?;
            Some((pod.uid(), view.uid.clone()))
        });
        self.running.entry(source).or_default().extend(found);
    }

    /// Gives adopted pods of a source's set the UIDs they run under, and forgets those that are not in there.
    pub fn apply(&mut self, source: Source, pods: Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
        let Some(running) = self.running.get_mut(&source) else { return pods };
        running.retain(|uid_from_content, _| pods.iter().any(|pod| pod.uid() == *uid_from_content));
        let rename = |pod: Arc<Pod>| match running.get(&pod.uid()) {
            Some(uid) => Arc::new(adopted(pod.as_ref().clone(), uid)),
            None => pod,
        };
        pods.into_iter().map(rename).collect()
    }
}

fn adopted(pod: Pod, running: &PodUid) -> Pod {
    let uid_from_content = pod.uid().to_string();
    let mut pod = with_uid(pod, running);
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(MADE_UID_ANNOTATION.to_owned(), uid_from_content);
    pod
}

/// Whether what runs under another UID is this pod: one that we adopted earlier, or one that another kubelet made.
fn is_this_pod(source: Source, pod: &Pod, view: &PodView) -> bool {
    let Some(sandbox) = view.newest_sandbox() else { return false };
    let same_place = view.full_name == pod.full_name()
        && annotation(sandbox, SOURCE_ANNOTATION) == Some(source.as_str());
    match annotation(sandbox, MADE_UID_ANNOTATION) {
        Some(uid_from_content) => same_place && uid_from_content == pod.uid().as_str(),
        None => same_place && is_foreign(sandbox) && is_alike(pod, view, sandbox),
    }
}

/// A sandbox of our own that has another UID is of another content.
fn is_foreign(sandbox: &SandboxView) -> bool {
    annotation(sandbox, ROOT_ANNOTATION).is_none()
}

/// Whether nothing that can be seen tells the two apart: both UIDs are made from content, the author's annotations
/// and the network are the same, and every container there is one of the pod's, unchanged.
fn is_alike(pod: &Pod, view: &PodView, sandbox: &SandboxView) -> bool {
    let written = authors(pod.metadata.annotations.iter().flatten());
    is_made(&pod.uid())
        && is_made(&view.uid)
        && annotation(sandbox, HASH_ANNOTATION) == Some(view.uid.as_str())
        && sandbox.ready
        && sandbox.host_network == pod.host_network()
        && authors(sandbox.annotations.iter()).eq(written)
        && view.containers.iter().filter(|c| c.sandbox == sandbox.id).all(|c| is_of(pod, c))
}

/// A UID that a manifest gives is never one to swap.
fn is_made(uid: &PodUid) -> bool {
    let digits = uid.as_str().as_bytes();
    digits.len() == 32 && digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'))
}

fn annotation<'a>(sandbox: &'a SandboxView, key: &str) -> Option<&'a str> {
    sandbox.annotations.get(key).map(String::as_str)
}

fn is_of(pod: &Pod, container: &ContainerView) -> bool {
    let wanted = pod.container(&container.name);
    wanted.is_some_and(|wanted| container.label.hash == Some(container_hash(&wanted.spec)))
}

/// Annotations that the manifest's author wrote.
fn authors<'a>(
    all: impl Iterator<Item = (&'a String, &'a String)>,
) -> impl Iterator<Item = (&'a String, &'a String)> {
    const AGENTS: [&str; 4] =
        [SOURCE_ANNOTATION, SEEN_ANNOTATION, HASH_ANNOTATION, ROOT_ANNOTATION];
    all.filter(|(key, _)| !AGENTS.contains(&key.as_str()))
}
