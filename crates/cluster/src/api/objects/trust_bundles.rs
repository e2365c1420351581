//! Trust bundles. A node may watch all of them, so there is one watch, from the first pod on that has one in a volume.

use std::sync::{Arc, OnceLock};

use k8s_openapi::api::certificates::v1beta1::ClusterTrustBundle;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use oarsman_core::references::ObjectChange;
use oarsman_core::trust_bundle::{TRUST_BUNDLE_GATE, TrustBundleName, TrustBundles, projections};
use oarsman_sync::{TaskName, TaskPanics};

use super::change_feed::ChangeFeed;
use super::gate_is_off;
use super::watched_set::WatchedSet;
use crate::{ClusterError, Result};

const OBJECT: &str = "clustertrustbundles";

pub(super) struct TrustBundleCache {
    is_enabled: bool,
    all: WatchedSet<ClusterTrustBundle>,
}

impl TrustBundleCache {
    pub(super) fn new(
        client: Client,
        is_enabled: bool,
        changes: ChangeFeed,
        panics: TaskPanics,
    ) -> Self {
        let on_change = Arc::new(move |bundle: &ClusterTrustBundle| {
            changes.publish(&ObjectChange::TrustBundle(bundle_name(bundle)));
        });
        let (task, fields) = (TaskName::TrustBundleWatch, String::new());
        let watch = OnceLock::new();
        let all = WatchedSet { client, panics, task, fields, object: OBJECT, on_change, watch };
        Self { is_enabled, all }
    }

    /// The bundles that a pod may have in its volumes, or why there are none for it; none if it wants none.
    pub(super) async fn get_trust_bundles(
        &self,
        pod: &Pod,
    ) -> Result<Option<std::result::Result<TrustBundles, String>>> {
        if projections(pod).is_empty() {
            return Ok(None);
        }
        if !self.is_enabled {
            return Ok(Some(Err(gate_is_off(TRUST_BUNDLE_GATE))));
        }
        let late = |limit| {
            let why = format!("no answer within {limit:?}");
            ClusterError::Unavailable { call: "list", object: OBJECT.to_owned(), why }
        };
        match self.all.all().wait(late).await {
            Ok(all) => {
                let used = all.values().filter(|bundle| bundle_name(bundle).is_used_by(pod));
                Ok(Some(Ok(used.map(|one| (one.name_any(), Arc::clone(one))).collect())))
            }
            // Bundles are not for nodes, or this API server has none.
            Err(ClusterError::Refused { why, .. }) => Ok(Some(Err(why))),
            Err(gone @ ClusterError::Gone { .. }) => Ok(Some(Err(gone.to_string()))),
            Err(error) => Err(error),
        }
    }
}

fn bundle_name(bundle: &ClusterTrustBundle) -> TrustBundleName {
    let signer = bundle.spec.signer_name.clone().unwrap_or_default();
    TrustBundleName { name: bundle.name_any(), signer }
}
