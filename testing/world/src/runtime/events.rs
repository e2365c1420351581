//! Container events: sent to every subscriber, and kept for a while for later ones.

use std::collections::VecDeque;
use std::time::Duration;

use oarsman_cri_types::v1::{ContainerEventResponse, ContainerEventType};
use tokio::sync::mpsc;

use super::state::FakeRuntimeState;

/// How long events are kept.
const KEPT: Duration = Duration::from_secs(5 * 60);
/// How many events are kept, and how many are queued for a slow subscriber.
const MOST: usize = 4096;

/// Subscribers and recent events.
#[derive(Default)]
pub(super) struct EventHub {
    listeners: Vec<mpsc::Sender<ContainerEventResponse>>,
    recent: VecDeque<SentEvent>,
}

struct SentEvent {
    at: Duration,
    event: ContainerEventResponse,
    /// A subscriber received it.
    heard: bool,
}

impl EventHub {
    /// Adds a subscriber. It first gets the recent events that no subscriber has received, as from containerd, or all recent ones.
    pub(super) fn listen(&mut self, replay: bool) -> mpsc::Receiver<ContainerEventResponse> {
        let (listener, events) = mpsc::channel(MOST);
        for told in &mut self.recent {
            if replay || !told.heard {
                listener.try_send(told.event.clone()).ok();
            }
            told.heard = true;
        }
        self.listeners.push(listener);
        events
    }

    /// Sends an event to all subscribers; one whose queue is full misses it.
    fn send(&mut self, event: ContainerEventResponse, at: Duration) {
        self.listeners.retain(|listener| !listener.is_closed());
        for listener in &self.listeners {
            listener.try_send(event.clone()).ok();
        }
        let heard = !self.listeners.is_empty();
        self.recent.push_back(SentEvent { at, event, heard });
        let keeps = |told: &SentEvent| told.at + KEPT >= at;
        while self.recent.len() > MOST || !self.recent.front().is_none_or(keeps) {
            self.recent.pop_front();
        }
    }

    /// Ends all subscriptions and drops recent events.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }
}

impl FakeRuntimeState {
    /// Sends an event of a container or sandbox, with its pod as it is now. There are no events during an outage.
    pub(super) fn send_event_for(&mut self, kind: ContainerEventType, id: &str, sandbox: &str) {
        if self.is_away() {
            return;
        }
        let of_it = self.containers.values().filter(|container| container.sandbox == sandbox);
        let event = ContainerEventResponse {
            container_id: id.to_owned(),
            container_event_type: kind.into(),
            created_at: self.clock.stamp(),
            pod_sandbox_status: self
                .sandboxes
                .get(sandbox)
                .map(super::sandboxes::FakeSandbox::status),
            containers_statuses: of_it.map(super::containers::FakeContainer::status).collect(),
        };
        self.events.send(event, self.clock.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str) -> ContainerEventResponse {
        ContainerEventResponse { container_id: id.to_owned(), ..Default::default() }
    }

    fn ids(events: &mut mpsc::Receiver<ContainerEventResponse>) -> Vec<String> {
        std::iter::from_fn(|| events.try_recv().ok()).map(|event| event.container_id).collect()
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_first_subscriber_gets_unreceived_events_and_a_second_does_not() {
        let mut events = EventHub::default();
        events.send(event("old"), Duration::ZERO);
        events.send(event("a"), 2 * SECOND);
        events.send(event("b"), SECOND + KEPT);
        let mut first = events.listen(false);
        let mut second = events.listen(false);
        events.send(event("c"), SECOND + KEPT);
        assert_eq!(ids(&mut first), ["a", "b", "c"]);
        assert_eq!(ids(&mut second), ["c"]);
        assert_eq!(ids(&mut events.listen(true)), ["a", "b", "c"]);
    }

    #[test]
    fn a_restart_ends_every_subscription_and_forgets() {
        let mut events = EventHub::default();
        let mut listener = events.listen(false);
        events.send(event("a"), Duration::ZERO);
        events.restart();
        assert_eq!(ids(&mut listener), ["a"]);
        assert!(listener.is_closed());
        assert_eq!(ids(&mut events.listen(true)), Vec::<String>::new());
    }
}
