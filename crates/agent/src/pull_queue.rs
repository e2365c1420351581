//! Pulls wait for their turn here; `core::image::pull_slots` says whose it is.

use std::collections::BTreeMap;

use oarsman_core::image::pull_slots::{PullSlots, PullTicket};
use oarsman_sync::Guarded;
use tokio::sync::oneshot;

/// The node's pulls.
#[derive(Debug)]
pub(crate) struct PullQueue(Guarded<State>);

#[derive(Debug)]
struct State {
    slots: PullSlots,
    /// Who is told that a pull may begin.
    waiting: BTreeMap<PullTicket, oneshot::Sender<()>>,
}

/// The right to pull one image; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct PullSlot<'a> {
    queue: &'a PullQueue,
    ticket: PullTicket,
}

impl PullQueue {
    /// So many images are pulled at once.
    pub(crate) fn new(slots: usize) -> Self {
        let (slots, waiting) = (PullSlots::new(slots), BTreeMap::new());
        Self(Guarded::new(State { slots, waiting }))
    }

    /// Waits until an image may be pulled for a pod of that namespace.
    pub(crate) async fn acquire(&self, namespace: &str) -> PullSlot<'_> {
        let (tell, told) = oneshot::channel();
        let ticket = {
            let mut state = self.0.lock();
            let ticket = state.slots.request(namespace);
            state.waiting.insert(ticket, tell);
            state.grant();
            ticket
        };
        // From here on it is given back also when the caller stops waiting.
        let slot = PullSlot { queue: self, ticket };
        // The sender is kept until it is used.
        told.await.ok();
        slot
    }
}

impl State {
    fn grant(&mut self) {
        while let Some(ticket) = self.slots.grant() {
            // One that stopped waiting gives its slot back by itself.
            if let Some(tell) = self.waiting.remove(&ticket) {
                tell.send(()).ok();
            }
        }
    }
}

impl Drop for PullSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.0.lock();
        state.waiting.remove(&self.ticket);
        state.slots.end(self.ticket);
        state.grant();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_slot_is_given_back_when_it_is_dropped_or_waited_for_no_longer() {
        let queue = PullQueue::new(1);
        let first = queue.acquire("a").await;
        assert!(timeout(SOON, queue.acquire("b")).await.is_err(), "one at a time");
        drop(first);
        let second = timeout(SOON, queue.acquire("c")).await.unwrap();
        let (third, ()) = tokio::join!(queue.acquire("a"), async { drop(second) });
        drop(third);
        assert!(queue.0.lock().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn pulls_that_never_end_hold_up_only_their_own_namespace() {
        let queue = PullQueue::new(2);
        let _trickling = [queue.acquire("hostile").await, queue.acquire("hostile").await];
        assert!(timeout(SOON, queue.acquire("hostile")).await.is_err());
        for _ in 0..3 {
            timeout(SOON, queue.acquire("kube-system")).await.unwrap();
        }
    }
}
