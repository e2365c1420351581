//! The evented PLEG: listens to the container events of the runtime. An event is only a hint that a pod should be read again:
//! it may be late, repeated or about a pod that is gone. The relist is in `supervisor`.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use oarsman_core::backoff::{Backoff, Failures};
use oarsman_core::ids::PodUid;
use oarsman_core::labels::POD_UID_LABEL;
use oarsman_cri_types::v1::ContainerEventResponse;
use tokio::sync::mpsc;

use crate::node::AgentContext;

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// The relist period when the runtime does not support container events.
const RELIST_PERIOD: Duration = Duration::from_secs(1);

/// What the supervisor is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlegEvent {
    /// A container or the sandbox of this pod changed.
    Pod(PodUid),
    /// Events may have been missed: relist.
    Resync,
}

/// Passes events on until the receiver is gone.
pub(crate) async fn listen(node: Arc<AgentContext>, pleg_events: mpsc::Sender<PlegEvent>) {
    let mut failures = Failures::new(BACKOFF);
    loop {
        let events = node.seams.runtime.container_events().await;
        node.report_store.record_runtime_response(&events);
        match events {
            Ok(mut events) => {
                send(&pleg_events, PlegEvent::Resync).await;
                while let Some(Ok(event)) = events.next().await {
                    failures.reset();
                    if let Some(uid) = pod_of(&event) {
                        send(&pleg_events, PlegEvent::Pod(uid)).await;
                    }
                }
            }
            Err(error) if error.is_unimplemented() => {
                tracing::warn!(
                    call = "GetContainerEvents",
                    "runtime has no container events, relisting every second"
                );
                return request_relists(&pleg_events).await;
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

async fn request_relists(pleg_events: &mpsc::Sender<PlegEvent>) {
    loop {
        send(pleg_events, PlegEvent::Resync).await;
        tokio::time::sleep(RELIST_PERIOD).await;
    }
}

/// A supervisor that is gone ends this task with itself.
async fn send(pleg_events: &mpsc::Sender<PlegEvent>, what: PlegEvent) {
    pleg_events.send(what).await.ok();
}

/// The pod of an event; none for the last event of a sandbox, which the relist covers.
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
