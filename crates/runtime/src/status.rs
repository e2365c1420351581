//! Sandboxes and containers as CRI describes them.

use std::collections::BTreeMap;

use oarsman_cri_types::v1 as cri;

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::inner::RuntimeInner;
use crate::oci::signals;
use crate::records::{SandboxPhase, StoredContainer, StoredMount, StoredSandbox};

impl StoredSandbox {
    fn state(&self) -> cri::PodSandboxState {
        match self.phase {
            SandboxPhase::Ready => cri::PodSandboxState::SandboxReady,
            SandboxPhase::Making | SandboxPhase::Lost | SandboxPhase::Stopped => {
                cri::PodSandboxState::SandboxNotready
            }
        }
    }

    pub(crate) fn metadata(&self) -> cri::PodSandboxMetadata {
        cri::PodSandboxMetadata {
            name: self.name.clone(),
            uid: self.uid.clone(),
            namespace: self.namespace.clone(),
            attempt: self.attempt,
        }
    }

    fn listed(&self) -> cri::PodSandbox {
        cri::PodSandbox {
            id: self.id.clone(),
            metadata: Some(self.metadata()),
            state: self.state().into(),
            created_at: self.created_at,
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            runtime_handler: self.handler.clone(),
        }
    }

    fn status(&self) -> cri::PodSandboxStatus {
        let mut addresses = self.addresses.iter().map(ToString::to_string);
        let network = cri::PodSandboxNetworkStatus {
            ip: addresses.next().unwrap_or_default(),
            additional_ips: addresses.map(|ip| cri::PodIp { ip }).collect(),
        };
        let namespaces = cri::Namespace { options: Some(self.options()) };
        cri::PodSandboxStatus {
            id: self.id.clone(),
            metadata: Some(self.metadata()),
            state: self.state().into(),
            created_at: self.created_at,
            network: Some(network),
            linux: Some(cri::LinuxPodSandboxStatus { namespaces: Some(namespaces) }),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            runtime_handler: self.handler.clone(),
        }
    }
}

impl StoredContainer {
    fn state(&self) -> cri::ContainerState {
        match (&self.started_at, &self.exit) {
            (_, Some(_)) => cri::ContainerState::ContainerExited,
            (Some(_), None) => cri::ContainerState::ContainerRunning,
            (None, None) => cri::ContainerState::ContainerCreated,
        }
    }

    pub(crate) fn metadata(&self) -> cri::ContainerMetadata {
        cri::ContainerMetadata { name: self.name.clone(), attempt: self.attempt }
    }

    fn image_spec(&self) -> cri::ImageSpec {
        cri::ImageSpec {
            image: self.image.clone(),
            user_specified_image: self.image.clone(),
            ..cri::ImageSpec::default()
        }
    }

    /// By its name and digest in a registry, as the API server shows it; by its id where it comes from none.
    fn shown_image(&self) -> &str {
        if self.image_digest.is_empty() { &self.image_id } else { &self.image_digest }
    }

    fn listed(&self) -> cri::Container {
        cri::Container {
            id: self.id.clone(),
            pod_sandbox_id: self.sandbox.clone(),
            metadata: Some(self.metadata()),
            image: Some(self.image_spec()),
            image_ref: self.shown_image().to_owned(),
            state: self.state().into(),
            created_at: self.created_at,
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            image_id: self.image_id.clone(),
        }
    }

    fn status(&self) -> cri::ContainerStatus {
        let exit = self.exit.as_ref();
        let user = cri::LinuxContainerUser {
            uid: i64::from(self.user.uid),
            gid: i64::from(self.user.gid),
            supplemental_groups: self.user.groups.iter().map(|group| i64::from(*group)).collect(),
        };
        let linux = Some(self.resources.shown());
        cri::ContainerStatus {
            id: self.id.clone(),
            metadata: Some(self.metadata()),
            state: self.state().into(),
            created_at: self.created_at,
            started_at: self.started_at.unwrap_or_default(),
            finished_at: exit.map_or(0, |exit| exit.finished_at),
            exit_code: exit.map_or(0, |exit| exit.code),
            image: Some(self.image_spec()),
            image_ref: self.shown_image().to_owned(),
            reason: exit.map(|exit| exit.reason.clone()).unwrap_or_default(),
            message: exit.map(|exit| exit.message.clone()).unwrap_or_default(),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            mounts: self.mounts.iter().map(StoredMount::shown).collect(),
            log_path: self.log_path.to_string_lossy().into_owned(),
            resources: Some(cri::ContainerResources { linux, windows: None }),
            image_id: self.image_id.clone(),
            user: Some(cri::ContainerUser { linux: Some(user) }),
            stop_signal: signals::shown(self.stop_signal).into(),
        }
    }
}

impl RuntimeInner {
    pub(crate) fn sandbox_status(&self, id: &str) -> Outcome<cri::PodSandboxStatus> {
        Ok(self.sandbox(id)?.0.status())
    }

    pub(crate) fn container_status(&self, id: &str) -> Outcome<cri::ContainerStatus> {
        let state = self.state.lock();
        let entry = state.containers.get(id);
        Ok(entry.ok_or_else(|| EmbeddedRuntimeError::no_container(id))?.record.status())
    }

    pub(crate) fn statuses_of(&self, sandbox: &str) -> Vec<cri::ContainerStatus> {
        let state = self.state.lock();
        let records = state.containers.values().map(|entry| &entry.record);
        records.filter(|it| it.sandbox == sandbox).map(StoredContainer::status).collect()
    }

    pub(crate) fn list_sandboxes(&self, filter: &cri::PodSandboxFilter) -> Vec<cri::PodSandbox> {
        let meets = |it: &cri::PodSandbox| {
            (filter.id.is_empty() || filter.id == it.id)
                && filter.state.as_ref().is_none_or(|wanted| wanted.state == it.state)
                && has_labels(&it.labels, &filter.label_selector)
        };
        let state = self.state.lock();
        state.sandboxes.values().map(|entry| entry.record.listed()).filter(meets).collect()
    }

    pub(crate) fn list_containers(&self, filter: &cri::ContainerFilter) -> Vec<cri::Container> {
        let meets = |it: &cri::Container| {
            (filter.id.is_empty() || filter.id == it.id)
                && (filter.pod_sandbox_id.is_empty() || filter.pod_sandbox_id == it.pod_sandbox_id)
                && filter.state.as_ref().is_none_or(|wanted| wanted.state == it.state)
                && has_labels(&it.labels, &filter.label_selector)
        };
        let state = self.state.lock();
        state.containers.values().map(|entry| entry.record.listed()).filter(meets).collect()
    }
}

pub(crate) fn has_labels(
    labels: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
) -> bool {
    wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
}
