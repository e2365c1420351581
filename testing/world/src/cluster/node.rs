//! The Node object and its lease: as its agent writes them, and as users read and change them.

mod client;
mod merge;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_cluster::Registration;
use oarsman_core::node::events::NodeEvent;
use serde_json::Value;

use super::objects::FakeClusterState;
use super::{ApiFailure, FakeCluster};

pub(super) use client::LinkedNode;

/// The stored Node and lease.
#[derive(Default)]
pub(super) struct NodeState {
    node: Option<Node>,
    lease: Option<Lease>,
    history: NodeHistory,
}

/// The writes of agents to their node, with the virtual time since the world's start.
#[derive(Debug, Clone, Default)]
pub struct NodeHistory {
    /// Every version of the object that an agent wrote.
    pub reports: Vec<(Duration, Node)>,
    /// When the lease was created and renewed.
    pub renewals: Vec<Duration>,
    /// The events of the node.
    pub events: Vec<(Duration, NodeEvent)>,
}

impl FakeCluster {
    /// The Node object as stored.
    pub fn node(&self) -> Option<Node> {
        self.state().node.node.clone()
    }

    /// The node's lease as stored.
    pub fn lease(&self) -> Option<Lease> {
        self.state().node.lease.clone()
    }

    /// The writes of agents to the node.
    pub fn node_history(&self) -> NodeHistory {
        self.state().node.history.clone()
    }

    /// Changes the Node object as a user or a controller would.
    pub fn update_node(&self, change: impl FnOnce(&mut Node)) {
        self.change(|state| {
            if let Some(mut node) = state.node.node.take() {
                change(&mut node);
                state.store_node(node);
            }
        });
    }

    /// Deletes the Node object.
    pub fn delete_node(&self) {
        self.change(|state| {
            state.version += 1;
            state.node.node = None;
        });
    }

    fn create_node(&self, node: Node) -> Result<Registration, ApiFailure> {
        self.check_available()?;
        self.change(|state| {
            if state.node.node.is_some() {
                return Ok(Registration::AlreadyExists);
            }
            let metadata = ObjectMeta {
                uid: Some(state.new_uid()),
                creation_timestamp: Some(state.now()),
                ..node.metadata
            };
            let made = state.store_node(Node { metadata, ..node });
            state.reported(&made);
            Ok(Registration::Created(Box::new(made)))
        })
    }

    fn read_node(&self) -> Result<Node, ApiFailure> {
        self.check_available()?;
        self.node().ok_or(ApiFailure::Gone)
    }

    fn patch_node(&self, patch: &Value) -> Result<Node, ApiFailure> {
        self.check_available()?;
        self.change(|state| {
            let node = state.node.node.as_ref().ok_or(ApiFailure::Gone)?;
            let patched = merge::patched(node, patch).map_err(ApiFailure::Unavailable)?;
            let stored = state.store_node(patched);
            state.reported(&stored);
            Ok(stored)
        })
    }

    fn read_lease(&self) -> Result<Option<Lease>, ApiFailure> {
        self.check_available()?;
        Ok(self.lease())
    }

    /// Creates a lease, or replaces the version it was made from.
    fn put_lease(&self, mut lease: Lease) -> Result<Lease, ApiFailure> {
        self.check_available()?;
        let mut state = self.state();
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        if state.node.lease.as_ref().and_then(version) != version(&lease) {
            return Err(ApiFailure::Unavailable("somebody else changed the lease".to_owned()));
        }
        state.version += 1;
        lease.metadata.resource_version = Some(state.version.to_string());
        state.node.lease = Some(lease.clone());
        let now = state.clock.elapsed();
        state.node.history.renewals.push(now);
        Ok(lease)
    }

    fn record_of_node(&self, event: NodeEvent) -> Result<(), ApiFailure> {
        self.check_available()?;
        let mut state = self.state();
        let now = state.clock.elapsed();
        state.node.history.events.push((now, event));
        Ok(())
    }
}

impl FakeClusterState {
    fn store_node(&mut self, mut node: Node) -> Node {
        self.version += 1;
        node.metadata.resource_version = Some(self.version.to_string());
        self.node.node = Some(node.clone());
        node
    }

    fn reported(&mut self, node: &Node) {
        let now = self.clock.elapsed();
        self.node.history.reports.push((now, node.clone()));
    }
}
