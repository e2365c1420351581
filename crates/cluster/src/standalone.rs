//! No cluster at all: statuses and events stay on this machine.

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{FullName, PodUid};

use crate::{Cluster, PodSets, Result};

/// A node that belongs to no cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standalone;

#[async_trait]
impl Cluster for Standalone {
    fn pods(&self) -> Option<PodSets> {
        None
    }

    async fn publish(&self, _: &FullName, _: &PodUid, _: &PodStatus) -> Result<()> {
        Ok(())
    }

    async fn delete(&self, _: &FullName, _: &PodUid) -> Result<()> {
        Ok(())
    }

    async fn record(&self, _: &Pod, _: &PodEvent) {}
}
