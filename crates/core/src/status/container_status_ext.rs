//! Accessors for the fields of a `ContainerStatus`, which are optional in the API.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus};

/// Accessors for the fields of a `ContainerStatus`.
pub(crate) trait ContainerStatusExt {
    /// Whether the state is running.
    fn is_running(&self) -> bool;
    /// Whether it waits to be started.
    fn is_waiting(&self) -> bool;
    /// How it ended, if that is how it stands.
    fn ended(&self) -> Option<&ContainerStateTerminated>;
    /// How the one of its name before it ended.
    fn ended_before(&self) -> Option<&ContainerStateTerminated>;
    /// Whether it has been seen to come up.
    fn has_started(&self) -> bool;
}

impl ContainerStatusExt for ContainerStatus {
    fn is_running(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.running.is_some())
    }

    fn is_waiting(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.waiting.is_some())
    }

    fn ended(&self) -> Option<&ContainerStateTerminated> {
        self.state.as_ref()?.terminated.as_ref()
    }

    fn ended_before(&self) -> Option<&ContainerStateTerminated> {
        self.last_state.as_ref()?.terminated.as_ref()
    }

    fn has_started(&self) -> bool {
        self.started == Some(true)
    }
}

/// A state in which a container has ended.
pub(super) fn terminated(end: ContainerStateTerminated) -> ContainerState {
    ContainerState { terminated: Some(end), ..ContainerState::default() }
}
