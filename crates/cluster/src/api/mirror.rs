//! Objects of pods as wholes: the reflection of a static pod is put there, and what has ended is taken away.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams, Preconditions};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;

use super::{ApiServer, FIELD_MANAGER, error};
use crate::{ClusterError, Result};

impl ApiServer {
    /// Puts a mirror pod there. One that is there already is left alone, also when it is not ours: the stream of pods tells.
    pub(super) async fn create_mirror(&self, mirror: &Pod) -> Result<()> {
        let name = mirror.full_name();
        let how =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.of::<Pod>(&name.namespace).create(&how, mirror).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(error::failed("the creation", &ClusterError::pod(&name), &error)),
        }
    }

    /// Deletes at once what has this UID.
    pub(super) async fn delete_pod(&self, name: &FullName, uid: &PodUid) -> Result<()> {
        let pods: Api<Pod> = self.of(&name.namespace);
        let meant = Preconditions { uid: Some(uid.to_string()), ..Preconditions::default() };
        let how = DeleteParams::default().grace_period(0).preconditions(meant);
        match pods.delete(&name.name, &how).await {
            Ok(_) => Ok(()),
            // One of another UID has its name.
            Err(error) if error::code(&error) == Some(409) => {
                Err(ClusterError::Gone { object: ClusterError::pod(name) })
            }
            Err(error) => Err(error::failed("the deletion", &ClusterError::pod(name), &error)),
        }
    }
}
