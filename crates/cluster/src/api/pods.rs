//! The API objects of the pods bound to this node: all of them each time something changed, and the deletion of one.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::unfold;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use oarsman_core::ids::{FullName, PodUid};

use super::store::PodStore;
use super::watch::{Watch, WatchProfile};
use super::{ApiServer, error};
use crate::{ClusterError, PodSets, Result};

#[cfg(test)]
mod tests;

/// The pods bound to a node, whose newest copies go through the store. Nothing comes before the first whole list; many changes that
/// come together are told together.
pub(super) fn sets(pods: Api<Pod>, node: &str, store: Arc<PodStore>) -> PodSets {
    let fields = format!("spec.nodeName={node}");
    let watch =
        Watch::new(pods, fields, "the pods of this node".to_owned(), WatchProfile::SHORT_LIVED);
    unfold((watch, store), |(mut watch, store)| async {
        loop {
            let mut told = false;
            for updates in watch.next().await {
                told |= store.apply_update(updates);
            }
            if told {
                return Some((store.pods(), (watch, store)));
            }
        }
    })
    .boxed()
}

impl ApiServer {
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
