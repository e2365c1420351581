//! Sends events of the node. Nothing waits for it; an event that cannot be sent for two minutes is dropped.

use std::sync::Arc;
use std::time::Duration;

use oarsman_cluster::ClusterError;
use oarsman_core::event::EventKind;
use oarsman_core::node::events::NodeEvent;
use tokio::sync::{Mutex, mpsc};
use tokio::time::sleep;

use super::NodeStatusContext;

/// How many events may wait to be sent.
const WAITING: usize = 64;
const TRIES: usize = 12;
const PAUSE: Duration = Duration::from_secs(10);

/// Queues events of the node.
#[derive(Debug)]
pub(super) struct NodeEventSender {
    node: String,
    queue: mpsc::Sender<NodeEvent>,
}

impl NodeEventSender {
    pub(super) fn new(node: &str) -> (Self, mpsc::Receiver<NodeEvent>) {
        let (queue, waiting) = mpsc::channel(WAITING);
        (Self { node: node.to_owned(), queue }, waiting)
    }

    /// Logs events and queues them.
    pub(super) fn send(&self, events: impl IntoIterator<Item = NodeEvent>) {
        for event in events {
            let (node, reason, detail) = (&self.node, event.reason, &event.message);
            match event.kind {
                EventKind::Normal => tracing::info!(node, reason, detail, "node event"),
                EventKind::Warning => tracing::warn!(node, reason, detail, "node warning event"),
            }
            if self.queue.try_send(event).is_err() {
                tracing::debug!(node, reason, "node event dropped, too many wait to be sent");
            }
        }
    }
}

pub(super) async fn run(
    context: Arc<NodeStatusContext>,
    waiting: Arc<Mutex<mpsc::Receiver<NodeEvent>>>,
) {
    let mut waiting = waiting.lock().await;
    while let Some(event) = waiting.recv().await {
        for _ in 0..TRIES {
            match context.with_deadline("an event", context.object.record(&event)).await {
                Err(ClusterError::Unavailable { .. } | ClusterError::Busy { .. }) => {
                    sleep(PAUSE).await;
                }
                Ok(()) | Err(_) => break,
            }
        }
    }
}
