//! Listens to the runtime for as long as the agent lives. An event is a hint that a pod should be read again, nothing more:
//! it may be late, doubled or about a pod that is long gone.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use oarsman_core::backoff::{Backoff, Failures};
use oarsman_core::ids::PodUid;
use oarsman_core::labels::POD_UID_LABEL;
use oarsman_cri_types::v1::ContainerEventResponse;
use tokio::sync::mpsc;

use crate::node::Node;

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// How often everything is listed when the runtime has no events to offer.
const RELIST: Duration = Duration::from_secs(1);

/// What the runtime told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Something happened to this pod.
    Pod(PodUid),
    /// Anything may have happened: nobody listened for a while.
    Anything,
}

/// Passes news on until nobody wants them.
pub(crate) async fn listen(node: Arc<Node>, news: mpsc::Sender<News>) {
    let mut failures = Failures::new(BACKOFF);
    loop {
        let events = node.seams.runtime.container_events().await;
        node.book.heard_runtime(&events);
        match events {
            Ok(mut events) => {
                tell(&news, News::Anything).await;
                while let Some(Ok(event)) = events.next().await {
                    failures.reset();
                    if let Some(uid) = pod_of(&event) {
                        tell(&news, News::Pod(uid)).await;
                    }
                }
            }
            Err(error) if error.is_unimplemented() => {
                tracing::warn!(
                    call = "GetContainerEvents",
                    "runtime has no container events, relisting every second"
                );
                return relist(&news).await;
            }
            Err(error) => {
                let attempt = failures.count().saturating_add(1);
                tracing::warn!(
                    call = "GetContainerEvents",
                    attempt,
                    %error,
                    "container event stream failed, will retry"
                );
            }
        }
        tokio::time::sleep(failures.next_wait()).await;
    }
}

async fn relist(news: &mpsc::Sender<News>) {
    loop {
        tell(news, News::Anything).await;
        tokio::time::sleep(RELIST).await;
    }
}

/// A supervisor that does not listen any more ends this task along with itself.
async fn tell(news: &mpsc::Sender<News>, what: News) {
    news.send(what).await.ok();
}

/// The pod an event is about; none for the last of a sandbox, which the audit takes care of.
fn pod_of(event: &ContainerEventResponse) -> Option<PodUid> {
    let sandbox = event.pod_sandbox_status.as_ref().and_then(|status| status.metadata.as_ref());
    let of_sandbox = sandbox.map(|metadata| metadata.uid.as_str());
    let mut labels = event.containers_statuses.iter().map(|status| &status.labels);
    let mut of_container = || labels.find_map(|labels| labels.get(POD_UID_LABEL));
    of_sandbox
        .filter(|uid| !uid.is_empty())
        .or_else(|| of_container().map(String::as_str))
        .map(PodUid::from)
}
