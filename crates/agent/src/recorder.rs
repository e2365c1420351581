//! Tells the cluster, and the book, what happened to pods. Nothing waits for it: an API server that is slow or away delays no pod, and
//! events that nobody takes for long are dropped.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::event::{EventKind, PodEvent};
use oarsman_core::pod::PodExt;
use tokio::sync::mpsc;

use crate::book::Book;
use crate::seams::Seams;

/// As many events may wait to be told.
const WAITING: usize = 1024;

/// Where events are left.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    book: Arc<Book>,
    left: mpsc::Sender<(Arc<Pod>, PodEvent)>,
}

/// What is to be told.
pub(crate) type Waiting = mpsc::Receiver<(Arc<Pod>, PodEvent)>;

impl Recorder {
    pub(crate) fn new(book: Arc<Book>) -> (Self, Waiting) {
        let (left, waiting) = mpsc::channel(WAITING);
        (Self { book, left }, waiting)
    }

    /// Says what happened to a pod.
    pub(crate) fn record(&self, pod: &Pod, events: impl IntoIterator<Item = PodEvent>) {
        let mut events = events.into_iter().peekable();
        if events.peek().is_none() {
            return;
        }
        let pod = Arc::new(pod.clone());
        for event in events {
            log(&pod, &event);
            self.book.happened(&pod, &event);
            if self.left.try_send((Arc::clone(&pod), event)).is_err() {
                tracing::debug!("an event is dropped: too many wait to be told");
            }
        }
    }
}

/// What the cluster is told, the log is told too; on a machine without a cluster it is all there is.
fn log(pod: &Pod, event: &PodEvent) {
    let (pod, object) = (pod.full_name(), event.field_path.as_deref());
    let (reason, message) = (&event.reason, &event.message);
    match event.kind {
        EventKind::Normal => tracing::info!(%pod, object, %reason, "{message}"),
        EventKind::Warning => tracing::warn!(%pod, object, %reason, "{message}"),
    }
}

/// Tells events one after the other, for ever.
pub(crate) async fn run(mut waiting: Waiting, seams: Seams) {
    while let Some((pod, event)) = waiting.recv().await {
        // An event that is not taken is dropped: nothing depends on it.
        seams.cluster.record(&pod, &event).await.ok();
    }
}
