//! No cluster at all: statuses and events stay on this machine, and there are no objects but those that were given.

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{iter, pending, unfold};
use k8s_openapi::api::core::v1::{Pod, PodStatus, ServiceAccount};
use oarsman_core::cri_spec::Lookup;
use oarsman_core::event_queue::CountedEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::references::ObjectChange;
use tokio::sync::watch;

use crate::{Cluster, ClusterError, ObjectChanges, PodSets, Result};

#[cfg(test)]
mod tests;

/// A node that belongs to no cluster.
#[derive(Clone, Debug, Default)]
pub struct Standalone {
    /// What was given beside the pods.
    given: Option<watch::Receiver<Lookup>>,
}

impl Standalone {
    /// One whose pods refer to what is given there, which may change.
    pub fn with(given: watch::Receiver<Lookup>) -> Self {
        Self { given: Some(given) }
    }
}

#[async_trait]
impl Cluster for Standalone {
    fn pods(&self) -> Option<PodSets> {
        None
    }

    async fn lookup(&self, _: &Pod) -> Result<Lookup> {
        Ok(self.given.as_ref().map(|given| given.borrow().clone()).unwrap_or_default())
    }

    async fn service_account(&self, name: &FullName) -> Result<ServiceAccount> {
        Err(ClusterError::Gone { object: ClusterError::service_account(name) })
    }

    async fn service_account_token(&self, pod: &Pod, _: &str, _: &str) -> Result<String> {
        Err(ClusterError::Gone { object: ClusterError::pod(&pod.full_name()) })
    }

    fn forget(&self, _: &PodUid) {}

    fn object_changes(&self) -> ObjectChanges {
        let Some(mut given) = self.given.clone() else { return pending().boxed() };
        let known = given.borrow_and_update().clone();
        let changes = unfold((given, known), |(mut given, known)| async move {
            given.changed().await.ok()?;
            let now = given.borrow_and_update().clone();
            let changes = now.changed_since(&known).into_iter().map(ObjectChange::from);
            Some((iter(changes.collect::<Vec<_>>()), (given, now)))
        });
        changes.flatten().chain(pending()).boxed()
    }

    async fn publish(&self, _: &FullName, _: &PodUid, _: &PodStatus) -> Result<()> {
        Ok(())
    }

    async fn create_mirror_pod(&self, _: &Pod) -> Result<()> {
        Ok(())
    }

    async fn delete(&self, _: &FullName, _: &PodUid) -> Result<()> {
        Ok(())
    }

    async fn record(&self, _: &CountedEvent) -> Result<()> {
        Ok(())
    }
}
