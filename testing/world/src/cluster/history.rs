//! What agents have told the server, for those who check it afterwards.

use std::collections::VecDeque;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{FullName, PodUid};

/// How many events are kept.
const EVENTS: usize = 1024;

/// A status that the server has taken from an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedStatus {
    /// Virtual time since the world began.
    pub at: Duration,
    /// Whose status it is.
    pub uid: PodUid,
    /// The status.
    pub status: PodStatus,
}

/// An object that an agent has deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDeletion {
    /// Virtual time since the world began.
    pub at: Duration,
    /// The pod's name.
    pub pod: FullName,
    /// The pod's UID.
    pub uid: PodUid,
    /// The phase that was stored was a terminal one.
    pub terminal: bool,
    /// The pod's deletion had been asked for.
    pub asked: bool,
}

/// An event that an agent has told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Virtual time since the world began.
    pub at: Duration,
    /// The pod it is about.
    pub uid: PodUid,
    /// The event.
    pub event: PodEvent,
    /// The name of its object.
    pub name: String,
    /// How often it has happened.
    pub count: i32,
}

/// All of it. Only events are many, so only they are let go.
#[derive(Default)]
pub(super) struct History {
    pub(super) statuses: Vec<PublishedStatus>,
    pub(super) deletions: Vec<AgentDeletion>,
    pub(super) events: VecDeque<RecordedEvent>,
}

impl History {
    /// One that is sent again because its answer was lost is there already.
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
