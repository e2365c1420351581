//! The node's own object and lease at a real API server.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::unfold;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, ObjectReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use oarsman_clock::Clock;
use oarsman_core::event::EventRecord;
use oarsman_core::node::events::NodeEvent;
use oarsman_core::node::lease::NAMESPACE;
use serde_json::Value;

use super::watch::{Watch, WatchProfile, WatchUpdate};
use super::{FIELD_MANAGER, error, events};
use crate::{ClusterError, NodeObject, NodeStates, Registration, Result};

/// Where events of objects without a namespace are kept.
const EVENTS_NAMESPACE: &str = "default";

/// The node of that name at an API server.
#[derive(Clone)]
pub(super) struct ServedNode {
    name: String,
    nodes: Api<Node>,
    leases: Api<Lease>,
    events: Api<Event>,
    clock: Arc<dyn Clock>,
}

impl ServedNode {
    /// The node of that name; its events go over a client of their own.
    pub(super) fn new(client: &Client, events: &Client, name: &str, clock: Arc<dyn Clock>) -> Self {
        Self {
            name: name.to_owned(),
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client.clone(), NAMESPACE),
            events: Api::namespaced(events.clone(), EVENTS_NAMESPACE),
            clock,
        }
    }

    fn failed(&self, call: &'static str, error: &kube::Error) -> ClusterError {
        error::failed(call, &format!("node {}", self.name), error)
    }
}

#[async_trait]
impl NodeObject for ServedNode {
    async fn create(&self, node: &Node) -> Result<Registration> {
        match self.nodes.create(&posted(), node).await {
            Ok(node) => Ok(Registration::Created(Box::new(node))),
            Err(error) if matches!(error::code(&error), Some(403 | 409)) => {
                Ok(Registration::AlreadyExists)
            }
            Err(error) => Err(self.failed("creation", &error)),
        }
    }

    async fn read(&self) -> Result<Node> {
        self.nodes.get(&self.name).await.map_err(|error| self.failed("the object", &error))
    }

    async fn patch(&self, patch: &Value) -> Result<Node> {
        let (params, patch) = (patched(), Patch::Strategic(patch));
        let patched = self.nodes.patch_status(&self.name, &params, &patch);
        patched.await.map_err(|error| self.failed("the status", &error))
    }

    fn states(&self) -> NodeStates {
        let fields = format!("metadata.name={}", self.name);
        let object = format!("node {}", self.name);
        let watch = Watch::new(self.nodes.clone(), fields, object, WatchProfile::SHORT_LIVED);
        unfold(watch, |mut watch| async { Some((newest(watch.next().await), watch)) }).boxed()
    }

    async fn lease(&self) -> Result<Option<Lease>> {
        self.leases.get_opt(&self.name).await.map_err(|error| self.failed("the lease", &error))
    }

    async fn create_lease(&self, lease: &Lease) -> Result<Lease> {
        let created = self.leases.create(&posted(), lease).await;
        created.map_err(|error| self.failed("the creation of the lease", &error))
    }

    async fn replace_lease(&self, lease: &Lease) -> Result<Lease> {
        let replaced = self.leases.replace(&self.name, &posted(), lease).await;
        replaced.map_err(|error| self.failed("the renewal of the lease", &error))
    }

    async fn record(&self, event: &NodeEvent) -> Result<()> {
        let event = node_event(&self.name, event, self.clock.wall());
        let created = self.events.create(&posted(), &event).await;
        created.map(drop).map_err(|error| self.failed("an event", &error))
    }
}

fn posted() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

fn patched() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// What the last of these says; there is one node of a name.
fn newest(mut updates: Vec<WatchUpdate<Node>>) -> Option<Node> {
    match updates.pop()? {
        WatchUpdate::Listed(mut nodes) => nodes.pop(),
        WatchUpdate::Changed(node) => Some(node),
        WatchUpdate::Deleted(_) => None,
    }
}

/// An event of the node, which has happened once.
fn node_event(node: &str, event: &NodeEvent, now: Timestamp) -> Event {
    let time = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let record = EventRecord {
        name: format!("{node}.{:x}", now.as_nanosecond()),
        message: event.message.clone(),
        count: 1,
        first: time,
        last: time,
    };
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.to_owned()),
        ..ObjectReference::default()
    };
    events::object(node, EVENTS_NAMESPACE, about, (event.kind, event.reason.to_owned()), record)
}

#[cfg(test)]
mod tests {
    use oarsman_core::event::EventKind;

    use super::*;

    #[test]
    fn an_event_of_a_node_names_it_without_a_uid() {
        let event = NodeEvent {
            kind: EventKind::Warning,
            reason: "Rebooted",
            message: "it was".to_owned(),
        };
        let node_event = node_event("n1", &event, Timestamp::UNIX_EPOCH);
        let object = &node_event.involved_object;
        let named = (object.api_version.as_deref(), object.kind.as_deref(), object.name.as_deref());
        assert_eq!(named, (Some("v1"), Some("Node"), Some("n1")));
        assert_eq!((object.uid.as_ref(), object.namespace.as_ref()), (None, None));
        assert_eq!(node_event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(
            (node_event.type_.as_deref(), node_event.reason.as_deref()),
            (Some("Warning"), Some("Rebooted"))
        );
    }
}
