//! The queue of the node's own events: sent one after the other, apart from those of pods, which are many and may wait.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use super::events::NodeEvent;
use crate::backoff::Backoff;
use crate::queue::{AT_ONCE, JobQueue, Outcome, Priority, WorkQueue};
use crate::time::Mono;

/// So many events wait at most; further ones are dropped.
const LIMIT: usize = 64;
/// An event that fails is dropped when it has waited for this long.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// After a request that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(10));

/// What came of sending an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEventResult {
    /// It was accepted, or will never be.
    Done,
    /// The API server is away or busy.
    Failed,
}

/// Events of the node that wait to be sent, in order.
#[derive(Debug)]
pub struct NodeEventQueue {
    queue: WorkQueue<()>,
    waiting: VecDeque<(NodeEvent, Mono)>,
}

impl Default for NodeEventQueue {
    fn default() -> Self {
        Self { queue: WorkQueue::new(BACKOFF), waiting: VecDeque::new() }
    }
}

impl NodeEventQueue {
    /// Adds an event. Returns whether it is dropped because too many wait.
    pub fn add(&mut self, event: NodeEvent, now: Mono) -> bool {
        if self.waiting.len() >= LIMIT {
            return true;
        }
        self.waiting.push_back((event, now));
        self.queue.add(&(), AT_ONCE, Priority::Normal);
        false
    }
}

impl JobQueue for NodeEventQueue {
    type Job = NodeEvent;
    type Outcome = NodeEventResult;

    fn next(&mut self, now: Mono) -> Option<NodeEvent> {
        self.queue.next(now)?;
        self.waiting.front().map(|(event, _)| event.clone())
    }

    fn done(&mut self, result: NodeEventResult, now: Mono) {
        let is_too_old =
            self.waiting.front().is_some_and(|(_, since)| now.since(*since) >= LONGEST_WAIT);
        if result == NodeEventResult::Done || is_too_old {
            self.waiting.pop_front();
        }
        let outcome = match result {
            NodeEventResult::Done => Outcome::Done,
            NodeEventResult::Failed => Outcome::Failed,
        };
        self.queue.done(&(), outcome, now);
        if self.waiting.is_empty() {
            self.queue.remove(&());
        } else {
            self.queue.add(&(), AT_ONCE, Priority::Normal);
        }
    }

    fn next_due(&self, now: Mono) -> Option<Mono> {
        self.queue.next_due(now)
    }

    fn recover(&mut self) {
        self.queue.recover();
    }
}
