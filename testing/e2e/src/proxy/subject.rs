//! The object of a call, and the pod that it belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oarsman_cri_types::v1::{
    Container, ContainerFilter, CreateContainerRequest, PodSandbox, PodSandboxConfig,
    PodSandboxFilter, PodSandboxMetadata,
};

use super::calls::PodRef;

/// The label by which agents list all containers of a pod.
const UID_LABEL: &str = "io.kubernetes.pod.uid";

/// The object of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct CallSubject {
    /// Its name for messages.
    pub(super) about: Option<String>,
    /// All names by which a rule may select it: ids, the pod's UID, its name, `namespace/name`.
    pub(super) names: BTreeSet<String>,
    pub(super) pod: Option<PodRef>,
}

impl CallSubject {
    fn of_pod(pod: PodRef) -> Self {
        let whole = format!("{}/{}", pod.namespace, pod.name);
        let names = [pod.uid.clone(), pod.name.clone(), whole.clone()].into();
        Self { about: Some(whole), names, pod: Some(pod) }
    }

    pub(super) fn named(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.about = Some(name.to_owned());
            self.names.insert(name.to_owned());
        }
        self
    }
}

/// The pods of sandboxes and containers, learned from the calls that pass by.
#[derive(Default)]
pub(super) struct PodIndex {
    known: Mutex<PodIndexState>,
}

#[derive(Default)]
struct PodIndexState {
    sandboxes: BTreeMap<String, PodRef>,
    /// Containers with their sandboxes.
    containers: BTreeMap<String, String>,
}

impl PodIndex {
    pub(super) fn learn_sandbox(&self, id: &str, metadata: Option<&PodSandboxMetadata>) {
        if let Some(metadata) = metadata {
            self.lock().sandboxes.insert(id.to_owned(), pod_id(metadata));
        }
    }

    pub(super) fn learn_sandboxes(&self, sandboxes: &[PodSandbox]) {
        for sandbox in sandboxes {
            self.learn_sandbox(&sandbox.id, sandbox.metadata.as_ref());
        }
    }

    pub(super) fn learn_container(&self, id: &str, sandbox: &str) {
        self.lock().containers.insert(id.to_owned(), sandbox.to_owned());
    }

    pub(super) fn learn_containers(&self, containers: &[Container]) {
        for container in containers {
            self.learn_container(&container.id, &container.pod_sandbox_id);
        }
    }

    /// A sandbox or a container by its id, or an image by its name. Calls on the runtime as a whole have an empty one.
    pub(super) fn of_id(&self, id: &str) -> CallSubject {
        let known = self.lock();
        let sandbox = known.containers.get(id).map_or(id, String::as_str);
        let pod = known.sandboxes.get(sandbox).cloned();
        let subject = pod.map_or_else(CallSubject::default, CallSubject::of_pod);
        subject.named(sandbox).named(id)
    }

    /// A pod that has no sandbox yet.
    pub(super) fn of_config(config: Option<&PodSandboxConfig>) -> CallSubject {
        let metadata = config.and_then(|config| config.metadata.as_ref());
        metadata.map_or_else(CallSubject::default, |it| CallSubject::of_pod(pod_id(it)))
    }

    /// A container that has no id yet.
    pub(super) fn of_new_container(&self, request: &CreateContainerRequest) -> CallSubject {
        let mut subject = self.of_id(&request.pod_sandbox_id);
        if subject.pod.is_none() {
            let of_pod = Self::of_config(request.sandbox_config.as_ref());
            subject.names.extend(of_pod.names);
            subject.pod = of_pod.pod;
        }
        let metadata = request.config.as_ref().and_then(|config| config.metadata.as_ref());
        if let (Some(pod), Some(metadata)) = (&subject.pod, metadata) {
            subject.about = Some(format!("{}/{}/{}", pod.namespace, pod.name, metadata.name));
            subject.names.insert(metadata.name.clone());
        }
        subject
    }

    /// A list of one pod's sandboxes, or of all.
    pub(super) fn of_sandbox_filter(&self, filter: Option<&PodSandboxFilter>) -> CallSubject {
        filter.map_or_else(CallSubject::default, |it| self.of_filter(&[&it.id], &it.label_selector))
    }

    /// A list of one pod's containers, or of all.
    pub(super) fn of_container_filter(&self, filter: Option<&ContainerFilter>) -> CallSubject {
        filter.map_or_else(CallSubject::default, |it| {
            self.of_filter(&[&it.id, &it.pod_sandbox_id], &it.label_selector)
        })
    }

    /// By the first id that is given, else by the pod's UID among the labels.
    pub(super) fn of_filter(&self, ids: &[&str], labels: &BTreeMap<String, String>) -> CallSubject {
        let id = ids.iter().find(|id| !id.is_empty());
        match (id, labels.get(UID_LABEL)) {
            (Some(id), _) => self.of_id(id),
            (None, Some(uid)) => self.of_uid(uid),
            (None, None) => CallSubject::default(),
        }
    }

    fn of_uid(&self, uid: &str) -> CallSubject {
        let pod = self.lock().sandboxes.values().find(|pod| pod.uid == uid).cloned();
        pod.map_or_else(CallSubject::default, CallSubject::of_pod).named(uid)
    }

    fn lock(&self) -> MutexGuard<'_, PodIndexState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pod_id(metadata: &PodSandboxMetadata) -> PodRef {
    let PodSandboxMetadata { uid, namespace, name, .. } = metadata.clone();
    PodRef { uid, namespace, name }
}
