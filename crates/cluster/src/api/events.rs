//! Telling what happened: v1 events, counted and bounded.
//!
//! An event waits in line until the API server has taken it, and is dropped when too many wait behind it. Whoever records one carries
//! the line forward; pods do not wait for that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use oarsman_clock::Clock;
use oarsman_core::event::{Correlator, EventKind, PodEvent, Record};
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::rate::Allowance;
use serde_json::json;
use tokio::time::sleep;

use super::jitter::Waits;
use super::{ApiServer, FIELD_MANAGER, error};
use crate::ClusterError;

#[cfg(test)]
mod tests;

/// So many events are told at once, over all pods,
const AT_ONCE: u32 = 100;
/// and then one after each such time.
const ONE_EACH: Duration = Duration::from_millis(20);
/// So many wait at most; the oldest go first.
const WAITING: usize = 256;
/// Who reports, as everybody expects of a node.
const COMPONENT: &str = "kubelet";

/// What is to be told, and what has been.
#[derive(Debug)]
pub(super) struct Events {
    clock: Arc<dyn Clock>,
    desk: Mutex<Desk>,
    /// One at a time carries events to the API server, so that they come in order.
    carrier: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Desk {
    correlator: Correlator,
    allowance: Allowance,
    waiting: VecDeque<Letter>,
    number: u64,
}

/// An event on its way.
#[derive(Clone, Debug)]
struct Letter {
    number: u64,
    event: Event,
    /// It has been told before and now has happened again.
    again: bool,
}

/// What came of a try.
enum Fate {
    Told,
    /// Nobody will ever take it.
    Dropped(ClusterError),
    /// After so many tries, or when the API server said.
    Later(ClusterError),
}

impl Events {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (correlator, allowance) = (Correlator::default(), Allowance::new(AT_ONCE, ONE_EACH));
        let desk = Desk { correlator, allowance, waiting: VecDeque::new(), number: 0 };
        Self { clock, desk: Mutex::new(desk), carrier: tokio::sync::Mutex::default() }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Nothing that holds the lock can panic half-way through a change.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in line, unless the pod has said too much.
    fn put(&self, node: &str, pod: &Pod, event: &PodEvent) {
        let now = self.clock.now();
        let FullName { name, .. } = pod.full_name();
        let mut desk = self.desk();
        let Some(record) = desk.correlator.tell((&name, &pod.uid()), event, now) else { return };
        let again = record.count > 1;
        desk.number += 1;
        let letter = Letter { number: desk.number, event: of_pod(node, pod, event, record), again };
        if desk.waiting.len() >= WAITING {
            desk.waiting.pop_front();
        }
        desk.waiting.push_back(letter);
    }

    /// The first in line, once another may be told.
    async fn next(&self) -> Option<Letter> {
        loop {
            let wait = {
                let mut desk = self.desk();
                let letter = desk.waiting.front()?.clone();
                match desk.allowance.take(self.clock.mono()) {
                    Ok(()) => return Some(letter),
                    Err(wait) => wait,
                }
            };
            sleep(wait).await;
        }
    }

    fn done(&self, letter: &Letter) {
        // It may have been dropped meanwhile.
        self.desk().waiting.retain(|waiting| waiting.number != letter.number);
    }
}

impl ApiServer {
    /// Puts an event in line and carries the line forward, until it is empty or its caller has had enough. What is left goes with the
    /// next event.
    pub(super) async fn record_event(&self, pod: &Pod, event: &PodEvent) {
        self.events.put(&self.node, pod, event);
        let Ok(_turn) = self.events.carrier.try_lock() else { return };
        let mut failures = 0;
        while let Some(letter) = self.events.next().await {
            match self.tell(&letter).await {
                Fate::Told => {
                    self.events.done(&letter);
                    failures = 0;
                }
                Fate::Dropped(error) => {
                    tracing::debug!(%error, "an event is dropped");
                    self.events.done(&letter);
                }
                Fate::Later(error) => {
                    tracing::debug!(%error, "an event waits");
                    failures += 1;
                    let asked = match error {
                        ClusterError::Busy { wait, .. } => wait,
                        _ => Duration::ZERO,
                    };
                    sleep(Waits::USUAL.after(failures).max(asked)).await;
                }
            }
        }
    }

    async fn tell(&self, letter: &Letter) -> Fate {
        let event = &letter.event;
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let object = format!("event {}", event.metadata.name.as_deref().unwrap_or_default());
        let mut told = if letter.again { self.count(namespace, event).await } else { Ok(false) };
        if matches!(told, Ok(false)) {
            told = self.create(namespace, event).await.map(|()| true);
        }
        match told.map_err(|error| error::failed("the event", &object, &error)) {
            Ok(_) => Fate::Told,
            Err(error @ (ClusterError::Unavailable { .. } | ClusterError::Busy { .. })) => {
                Fate::Later(error)
            }
            Err(error @ (ClusterError::Gone { .. } | ClusterError::Refused { .. })) => {
                Fate::Dropped(error)
            }
        }
    }

    /// Says that an event has happened again; false when the API server has forgotten it.
    async fn count(&self, namespace: &str, event: &Event) -> kube::Result<bool> {
        let how =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let change = json!({
            "count": event.count,
            "lastTimestamp": event.last_timestamp,
            "message": event.message,
        });
        let name = event.metadata.name.as_deref().unwrap_or_default();
        match self.of::<Event>(namespace).patch(name, &how, &Patch::Strategic(change)).await {
            Ok(_) => Ok(true),
            Err(error) if error::code(&error) == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, namespace: &str, event: &Event) -> kube::Result<()> {
        let how =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.of::<Event>(namespace).create(&how, event).await {
            Ok(_) => Ok(()),
            // It took it the last time, and the answer was lost.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// An event of a pod.
fn of_pod(node: &str, pod: &Pod, event: &PodEvent, record: Record) -> Event {
    let FullName { name, namespace } = pod.full_name();
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(name),
        namespace: Some(namespace.clone()),
        uid: pod.metadata.uid.clone(),
        resource_version: pod.metadata.resource_version.clone(),
        field_path: event.field_path.clone(),
    };
    let reason = event.reason.to_string();
    object(node, &namespace, about, (event.kind, reason), record)
}

/// An event as the API has it, told by this node.
pub(super) fn object(
    node: &str,
    namespace: &str,
    about: ObjectReference,
    (kind, reason): (EventKind, String),
    record: Record,
) -> Event {
    let kind = match kind {
        EventKind::Normal => "Normal",
        EventKind::Warning => "Warning",
    };
    Event {
        metadata: ObjectMeta {
            name: Some(record.name),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: about,
        type_: Some(kind.to_owned()),
        reason: Some(reason),
        message: Some(record.message),
        count: Some(record.count),
        first_timestamp: Some(Time(record.first)),
        last_timestamp: Some(Time(record.last)),
        source: Some(EventSource {
            component: Some(COMPONENT.to_owned()),
            host: Some(node.to_owned()),
        }),
        reporting_component: Some(COMPONENT.to_owned()),
        reporting_instance: Some(node.to_owned()),
        ..Event::default()
    }
}
