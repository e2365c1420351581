//! Mirror pods: the API objects of static pods.

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use oarsman_core::pod::PodExt;

use super::{ApiServer, FIELD_MANAGER, error};
use crate::{ClusterError, Result};

impl ApiServer {
    /// Creates a mirror pod. An existing pod of its name is left alone, even if it is not ours: the stream of pods shows it.
    pub(super) async fn create_mirror_pod_object(&self, mirror: &Pod) -> Result<()> {
        let name = mirror.full_name();
        let how =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.of::<Pod>(&name.namespace).create(&how, mirror).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(error::failed("the creation", &ClusterError::pod(&name), &error)),
        }
    }
}
