//! Containers in the CRI messages of lists, statuses and statistics.

use oarsman_cri_types::v1::{
    self as cri, ContainerAttributes, ContainerResources, ContainerState, ContainerStatus,
    ContainerUser, ImageSpec, LinuxContainerResources, LinuxContainerUser,
};

use super::{ContainerRunState, FakeContainer, LOST};

impl FakeContainer {
    /// The entry of a list.
    pub(in crate::runtime) fn listed(&self) -> cri::Container {
        cri::Container {
            id: self.id.clone(),
            pod_sandbox_id: self.sandbox.clone(),
            metadata: Some(self.metadata.clone()),
            image: Some(self.image_spec()),
            image_ref: self.image.digest.clone(),
            state: self.state().into(),
            created_at: self.created_at,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            image_id: self.image.id.clone(),
        }
    }

    pub(in crate::runtime) fn status(&self) -> ContainerStatus {
        let linux = LinuxContainerUser {
            uid: self.program.uid(),
            gid: self.program.gid(),
            ..Default::default()
        };
        let still = ContainerStatus {
            id: self.id.clone(),
            metadata: Some(self.metadata.clone()),
            state: self.state().into(),
            created_at: self.created_at,
            image: Some(self.image_spec()),
            image_ref: self.image.digest.clone(),
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            mounts: self.config.mounts.clone(),
            log_path: self.log_path.clone(),
            resources: Some(ContainerResources { linux: self.resources(), windows: None }),
            image_id: self.image.id.clone(),
            user: Some(ContainerUser { linux: Some(linux) }),
            stop_signal: self.config.stop_signal,
            ..ContainerStatus::default()
        };
        self.with_state(still)
    }

    /// Adds the fields that depend on the state.
    fn with_state(&self, status: ContainerStatus) -> ContainerStatus {
        if self.lost {
            return ContainerStatus { exit_code: LOST, reason: "Unknown".to_owned(), ..status };
        }
        match &self.run_state {
            ContainerRunState::Created => status,
            ContainerRunState::Running(running) => {
                ContainerStatus { started_at: running.started_at, ..status }
            }
            ContainerRunState::Exited(exit) => ContainerStatus {
                started_at: exit.started_at,
                finished_at: exit.finished_at,
                exit_code: exit.code,
                reason: exit.reason.to_owned(),
                message: exit.message.clone(),
                ..status
            },
        }
    }

    /// The attributes in statistics.
    pub(in crate::runtime) fn attributes(&self) -> ContainerAttributes {
        ContainerAttributes {
            id: self.id.clone(),
            metadata: Some(self.metadata.clone()),
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
        }
    }

    /// The state, as far as the runtime knows.
    pub(in crate::runtime) fn state(&self) -> ContainerState {
        if self.lost {
            return ContainerState::ContainerUnknown;
        }
        match self.run_state {
            ContainerRunState::Created => ContainerState::ContainerCreated,
            ContainerRunState::Running(_) => ContainerState::ContainerRunning,
            ContainerRunState::Exited(_) => ContainerState::ContainerExited,
        }
    }

    pub(in crate::runtime) fn resources(&self) -> Option<LinuxContainerResources> {
        self.config.linux.as_ref().and_then(|linux| linux.resources.clone())
    }

    /// The image under its own name, whatever name was in the request.
    fn image_spec(&self) -> ImageSpec {
        let asked = self.config.image.clone().unwrap_or_default();
        ImageSpec { image: self.image.source.name.clone(), ..asked }
    }
}
