//! Claims of persistent volumes and the volumes that they are bound to.
//!
//! A node may get them and not watch them. A claim and its volume stay bound to each other for good, so that both are read until they
//! are, and not again for the same pod. A pod whose claim is not bound is synced again after a while, which reads it again.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::persistent_volume::{bound_name, is_settled};
use oarsman_core::pod::PodExt;
use oarsman_core::references::claims;
use oarsman_sync::Guarded;
use tokio::time::{Instant, sleep, timeout};

use super::super::error::failed;
use super::super::jitter::JitteredBackoff;
use super::CALL;
use super::cached_value::PATIENCE;
use crate::{ClusterError, Result};

/// The annotations of volumes that count here.
const ANNOTATIONS: [&str; 2] =
    ["pv.beta.kubernetes.io/gid", "volume.beta.kubernetes.io/mount-options"];

/// A claim, and its volume if it has one.
#[derive(Clone)]
struct FoundClaim {
    claim: Arc<PersistentVolumeClaim>,
    volume: Option<Arc<PersistentVolume>>,
}

/// What pods found of their claims.
#[derive(Default)]
pub(super) struct FoundClaims {
    pub(super) claims: BTreeMap<FullName, Arc<PersistentVolumeClaim>>,
    pub(super) volumes: BTreeMap<String, Arc<PersistentVolume>>,
}

/// Reads claims and volumes, and keeps those that are bound for the pods that use them.
pub(super) struct ClaimReader {
    client: Client,
    /// Never held over an await.
    settled: Guarded<BTreeMap<(PodUid, FullName), FoundClaim>>,
}

impl ClaimReader {
    pub(super) fn new(client: Client) -> Self {
        Self { client, settled: Guarded::default() }
    }

    /// The claims of a pod that exist, and their volumes.
    pub(super) async fn get_claims(&self, pod: &Pod) -> Result<FoundClaims> {
        let (uid, references) = (pod.uid(), claims(pod));
        let answers = references.into_iter().map(|reference| async {
            let found = self.get(&uid, &reference.claim).await?;
            Ok::<_, ClusterError>(found.map(|found| (reference.claim, found)))
        });
        let mut all = FoundClaims::default();
        for (name, found) in try_join_all(answers).await?.into_iter().flatten() {
            all.claims.insert(name, found.claim);
            let volume = found
                .volume
                .map(|volume| (volume.metadata.name.clone().unwrap_or_default(), volume));
            all.volumes.extend(volume);
        }
        Ok(all)
    }

    /// A pod uses its claims no longer.
    pub(super) fn forget(&self, pod: &PodUid) {
        self.settled.lock().retain(|(uid, _), _| uid != pod);
    }

    async fn get(&self, pod: &PodUid, name: &FullName) -> Result<Option<FoundClaim>> {
        let key = (pod.clone(), name.clone());
        if let Some(known) = self.settled.lock().get(&key).cloned() {
            return Ok(Some(known));
        }
        let Some(claim) = self.read_claim(name).await? else { return Ok(None) };
        let volume = match bound_name(&claim) {
            Some(volume) => self.read_volume(volume).await?,
            None => None,
        };
        let found = FoundClaim { claim: Arc::new(claim), volume: volume.map(Arc::new) };
        if found.volume.as_ref().is_some_and(|volume| is_settled(&found.claim, volume)) {
            self.settled.lock().insert(key, found.clone());
        }
        Ok(Some(found))
    }

    async fn read_claim(&self, name: &FullName) -> Result<Option<PersistentVolumeClaim>> {
        let object = format!("persistentvolumeclaim {}/{}", name.namespace, name.name);
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &name.namespace);
        let found = patiently(&object, || api.get(&name.name)).await?;
        Ok(found.map(|claim| PersistentVolumeClaim {
            metadata: used_metadata(claim.metadata),
            ..claim
        }))
    }

    async fn read_volume(&self, name: &str) -> Result<Option<PersistentVolume>> {
        let object = format!("persistentvolume {name}");
        let api: Api<PersistentVolume> = Api::all(self.client.clone());
        let found = patiently(&object, || api.get(name)).await?;
        Ok(found.map(|volume| PersistentVolume {
            metadata: used_metadata(volume.metadata),
            spec: volume.spec,
            status: None,
        }))
    }
}

/// The node authorizer refuses what belongs to a new pod until its own watches have seen the binding: a refusal is tried again for a while.
/// None when there is no such object.
async fn patiently<T, F>(object: &str, get: impl Fn() -> F) -> Result<Option<T>>
where
    F: Future<Output = std::result::Result<T, kube::Error>>,
{
    let (began, mut refusals) = (Instant::now(), 0);
    loop {
        let error = match timeout(CALL, get()).await {
            Ok(Ok(found)) => return Ok(Some(found)),
            Ok(Err(error)) => failed("get", object, &error),
            Err(_) => {
                let (object, why) = (object.to_owned(), format!("no answer within {CALL:?}"));
                return Err(ClusterError::Unavailable { call: "get", object, why });
            }
        };
        match error {
            ClusterError::Gone { .. } => return Ok(None),
            ClusterError::Refused { .. } if began.elapsed() <= PATIENCE => refusals += 1,
            error => return Err(error),
        }
        sleep(JitteredBackoff::FIRST_ANSWER.after(refusals)).await;
    }
}

/// The rest is not used, and may be large.
fn used_metadata(metadata: ObjectMeta) -> ObjectMeta {
    let annotations = metadata.annotations.map(|mut all| {
        all.retain(|key, _| ANNOTATIONS.contains(&key.as_str()));
        all
    });
    ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        deletion_timestamp: metadata.deletion_timestamp,
        owner_references: metadata.owner_references,
        annotations: annotations.filter(|all| !all.is_empty()),
        ..ObjectMeta::default()
    }
}
