//! Sends events of the node. Nothing waits for it; the rules of the queue are in `oarsman_core::node::event_queue`.

use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_cluster::ClusterError;
use oarsman_core::event::EventKind;
use oarsman_core::node::event_queue::{NodeEventQueue, NodeEventResult};
use oarsman_core::node::events::NodeEvent;
use oarsman_sync::Guarded;

use super::NodeStatusContext;
use crate::node::AgentConfig;
use crate::work_queue;

/// One at a time, so that they arrive in order.
const IN_FLIGHT: usize = 1;

/// Queues events of the node.
pub(crate) struct NodeEventSender {
    node: String,
    /// Whether there is an API server to send them to.
    is_member: bool,
    queue: Guarded<NodeEventQueue>,
    clock: Arc<dyn Clock>,
}

impl NodeEventSender {
    pub(crate) fn new(config: &AgentConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            node: config.addresses.name.clone(),
            is_member: config.node_status_config.is_some(),
            queue: Guarded::default(),
            clock,
        }
    }

    /// Logs events and, in a cluster, queues them.
    pub(crate) fn send(&self, events: impl IntoIterator<Item = NodeEvent>) {
        for event in events {
            let (node, reason, detail) = (&self.node, event.reason, &event.message);
            match event.kind {
                EventKind::Normal => tracing::info!(node, reason, detail, "node event"),
                EventKind::Warning => tracing::warn!(node, reason, detail, "node warning event"),
            }
            let now = self.clock.mono();
            if self.is_member && self.queue.update(|queue| queue.add(event, now)) {
                tracing::debug!(node, reason, "node event dropped, too many wait to be sent");
            }
        }
    }
}

pub(super) async fn run(context: Arc<NodeStatusContext>) {
    let clock = context.node.seams.clock.as_ref();
    let perform = |event| send_event(&context, event);
    work_queue::run(&context.node.node_events.queue, clock, IN_FLIGHT, perform).await;
}

async fn send_event(context: &NodeStatusContext, event: NodeEvent) -> NodeEventResult {
    match context.with_deadline("an event", context.object.record(&event)).await {
        Err(ClusterError::Unavailable { .. } | ClusterError::Busy { .. }) => {
            NodeEventResult::Failed
        }
        Ok(()) | Err(_) => NodeEventResult::Done,
    }
}
