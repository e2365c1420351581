//! Gives static pods the UIDs under which another kubelet runs them already, so that taking a node over restarts nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::unfold;
use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::PodSets;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::sources::Source;
use oarsman_core::static_pod::Adoptions;
use oarsman_core::view::{PodView, from_cri};
use oarsman_cri::{CriError, Runtime};
use tokio::time::sleep;

use crate::pod_reader;

/// The delay before the runtime is asked again: until it answers, it is not known which pods run already.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The same sets, whose pods go by the UID they run under where the runtime holds just that pod of another kubelet's. It is
/// looked for once, with the first set; a pod that is edited later is a new pod.
pub fn with_adopted_uids(source: Source, sets: PodSets, runtime: Arc<dyn Runtime>) -> PodSets {
    let adopter = Adopter { source, sets, runtime, adoptions: None };
    unfold(adopter, |mut adopter| async { adopter.next().await.map(|pods| (pods, adopter)) })
        .boxed()
}

struct Adopter {
    source: Source,
    sets: PodSets,
    runtime: Arc<dyn Runtime>,
    adoptions: Option<Adoptions>,
}

impl Adopter {
    async fn next(&mut self) -> Option<Vec<Arc<Pod>>> {
        let pods = self.sets.next().await?;
        let mut adoptions = match self.adoptions.take() {
            Some(adoptions) => adoptions,
            None => find_adoptions(self.source, &pods, &*self.runtime).await,
        };
        let pods = adoptions.apply(self.source, pods);
        self.adoptions = Some(adoptions);
        Some(pods)
    }
}

async fn find_adoptions(source: Source, pods: &[Arc<Pod>], runtime: &dyn Runtime) -> Adoptions {
    let names: BTreeSet<FullName> = pods.iter().map(|pod| pod.full_name()).collect();
    let mut adoptions = Adoptions::default();
    // Without pods there is nothing to look up.
    while !names.is_empty() {
        match running_pods(runtime, &names).await {
            Ok(running_pods) => {
                adoptions.learn(source, pods, &running_pods);
                break;
            }
            Err(error) => {
                tracing::warn!(%source, %error, "static pods not compared with the runtime, will retry");
                sleep(RETRY_DELAY).await;
            }
        }
    }
    adoptions
}

/// What the runtime holds of pods with these names.
async fn running_pods(
    runtime: &dyn Runtime,
    names: &BTreeSet<FullName>,
) -> Result<Vec<PodView>, CriError> {
    let sandboxes = runtime.list_pod_sandboxes(None).await?;
    let pods = from_cri::by_pod(sandboxes, Vec::new());
    let pods: Vec<_> = pods.into_iter().filter(|(_, pod)| names.contains(&pod.full_name)).collect();
    try_join_all(pods.iter().map(|(uid, pod)| pod_reader::read(runtime, uid, &pod.full_name))).await
}
