//! The history of agents' writes to the server, for invariants and tests.

use std::collections::VecDeque;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{FullName, PodUid};

/// How many events are kept.
const EVENTS: usize = 1024;

/// A status that the server has accepted from an agent.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct PublishedStatus {
    /// Virtual time since the world's start.
    pub at: Duration,
    pub uid: PodUid,
    pub status: PodStatus,
}

/// An object that an agent has deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct AgentDeletion {
    /// Virtual time since the world's start.
    pub at: Duration,
    pub pod: FullName,
    pub uid: PodUid,
    /// The stored phase was a terminal one.
    pub terminal: bool,
    /// A user had deleted the pod before.
    pub asked: bool,
}

/// An event that an agent has recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct RecordedEvent {
    /// Virtual time since the world's start.
    pub at: Duration,
    pub uid: PodUid,
    pub event: PodEvent,
    /// The name of its object.
    pub name: String,
    /// How often it has happened.
    pub count: i32,
}

/// The whole history. Only events are many, so only they are dropped.
#[derive(Default)]
pub(super) struct History {
    pub(super) statuses: Vec<PublishedStatus>,
    pub(super) deletions: Vec<AgentDeletion>,
    pub(super) events: VecDeque<RecordedEvent>,
}

impl History {
    /// An event that is sent again because its answer was lost is stored once.
    pub(super) fn record(&mut self, event: RecordedEvent) {
        let is_same = |it: &RecordedEvent| (&it.name, it.count) == (&event.name, event.count);
        if self.events.iter().any(is_same) {
            return;
        }
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
