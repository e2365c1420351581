//! The event recorder: logs what happens to pods, shows it in reports, and sends it to the API server.
//!
//! Nothing waits for it: an API server that is slow or away delays no pod. The rules of the queue are in `oarsman_core::event_queue`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_clock::Clock;
use oarsman_cluster::ClusterError;
use oarsman_core::event::{EventKind, PodEvent};
use oarsman_core::event_queue::{EventJob, EventKey, EventQueue, EventResult};
use oarsman_core::pod::PodExt;
use oarsman_sync::Guarded;

use crate::report_store::ReportStore;
use crate::seams::Seams;
use crate::work_queue;

/// One at a time: events are less urgent than anything else that the API server is asked for.
const IN_FLIGHT: usize = 1;

/// Where events are handed over; clones are the same.
#[derive(Clone)]
pub(crate) struct EventRecorder {
    report_store: Arc<ReportStore>,
    queue: Arc<Guarded<EventQueue>>,
    clock: Arc<dyn Clock>,
}

impl EventRecorder {
    pub(crate) fn new(report_store: Arc<ReportStore>, clock: Arc<dyn Clock>) -> Self {
        Self { report_store, queue: Arc::default(), clock }
    }

    /// These things happened to a pod.
    pub(crate) fn record(&self, pod: &Pod, events: impl IntoIterator<Item = PodEvent>) {
        for event in events {
            log(pod, &event);
            self.report_store.record_event(pod, &event);
            let now = self.clock.now();
            if self.queue.update(|queue| queue.add(pod, event, now)) {
                tracing::debug!(object = "event", "oldest event dropped, too many wait to be sent");
            }
        }
    }
}

/// Events are logged, too; on a machine without a cluster the log is all there is.
fn log(pod: &Pod, event: &PodEvent) {
    let (pod, uid, object) = (pod.full_name(), pod.uid(), event.field_path.as_deref());
    let (reason, detail) = (&event.reason, &event.message);
    match event.kind {
        EventKind::Normal => tracing::info!(%pod, %uid, object, %reason, %detail, "pod event"),
        EventKind::Warning => {
            tracing::warn!(%pod, %uid, object, %reason, %detail, "pod warning event");
        }
    }
}

/// Sends events until it is dropped.
pub(crate) async fn run(recorder: EventRecorder, seams: Seams) {
    let perform = |job| perform(job, &seams);
    work_queue::run(&recorder.queue, seams.clock.as_ref(), IN_FLIGHT, perform).await;
}

async fn perform(job: EventJob, seams: &Seams) -> (EventKey, EventResult) {
    let result = match seams.cluster.record(&job.event).await {
        Ok(()) => EventResult::Accepted,
        Err(error) => {
            tracing::debug!(pod = %job.event.pod, %error, "event not sent");
            failed(&error)
        }
    };
    (job.key, result)
}

fn failed(error: &ClusterError) -> EventResult {
    match error {
        ClusterError::Unavailable { .. } => EventResult::Failed(None),
        ClusterError::Busy { wait, .. } => EventResult::Failed(Some(*wait)),
        ClusterError::Gone { .. } | ClusterError::Refused { .. } => EventResult::Refused,
    }
}
