//! Hooks of resource managers around the life of a container: before it is created, before it is started, before it is stopped and
//! after it has stopped. (In the Go kubelet: `InternalContainerLifecycle`.)

use std::sync::Arc;

use async_trait::async_trait;
use oarsman_core::ids::{ContainerId, PodUid};
use oarsman_cri_types::v1::CreateContainerRequest;

#[cfg(test)]
mod tests;

/// A container that something is about to be done to.
#[derive(Clone, Copy, Debug)]
pub struct ContainerRef<'a> {
    /// Its pod.
    pub pod: &'a PodUid,
    /// Its name in the pod's spec.
    pub name: &'a str,
    /// The runtime's id; none before it is created.
    pub id: Option<&'a ContainerId>,
}

/// Why a container may not be created or started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{manager}: {why}")]
pub struct ContainerRefused {
    /// The resource manager that refused.
    pub manager: &'static str,
    /// What is missing and what to do about it.
    pub why: String,
}

/// What a resource manager does around the life of a container. Every call may be repeated: a start that fails is tried again.
#[async_trait]
pub trait ContainerLifecycle: Send + Sync + 'static {
    /// Before the container is created: may change what it is created with.
    async fn pre_create(
        &self,
        _: &ContainerRef<'_>,
        _: &mut CreateContainerRequest,
    ) -> Result<(), ContainerRefused> {
        Ok(())
    }

    /// Before the container is started.
    async fn pre_start(&self, _: &ContainerRef<'_>) -> Result<(), ContainerRefused> {
        Ok(())
    }

    /// Before the container is stopped. A stop cannot be refused.
    async fn pre_stop(&self, _: &ContainerRef<'_>) {}

    /// After the container has ended: it was stopped, or it was read as ended. An agent that was restarted calls it for every container
    /// that it finds ended, since it does not know which of them an earlier agent has called it for.
    async fn post_stop(&self, _: &ContainerRef<'_>) {}
}

/// The hooks of all resource managers, in order.
#[derive(Clone, Default)]
pub struct ContainerHooks(Vec<Arc<dyn ContainerLifecycle>>);

impl ContainerHooks {
    /// These, in this order.
    pub fn new(managers: Vec<Arc<dyn ContainerLifecycle>>) -> Self {
        Self(managers)
    }

    pub(crate) async fn pre_create(
        &self,
        container: &ContainerRef<'_>,
        request: &mut CreateContainerRequest,
    ) -> Result<(), ContainerRefused> {
        for manager in &self.0 {
            manager.pre_create(container, request).await?;
        }
        Ok(())
    }

    pub(crate) async fn pre_start(
        &self,
        container: &ContainerRef<'_>,
    ) -> Result<(), ContainerRefused> {
        for manager in &self.0 {
            manager.pre_start(container).await?;
        }
        Ok(())
    }

    pub(crate) async fn pre_stop(&self, container: &ContainerRef<'_>) {
        for manager in &self.0 {
            manager.pre_stop(container).await;
        }
    }

    pub(crate) async fn post_stop(&self, container: &ContainerRef<'_>) {
        for manager in &self.0 {
            manager.post_stop(container).await;
        }
    }
}
