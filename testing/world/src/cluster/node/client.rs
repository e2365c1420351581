//! The node's object as an agent reaches it: every call over its life's line.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use oarsman_agent::latest;
use oarsman_cluster::{NodeObject, NodeStates, Registration, Result};
use oarsman_core::node::events::NodeEvent;
use serde_json::Value;
use tokio::time::sleep;

use super::super::client::{Connection, PATIENCE};
use super::super::watch::PAUSE;
use super::super::{Failure, FakeCluster};
use crate::faults::EventFate;
use crate::line::{Call, Conduct};

/// What calls are about, for the trace and for errors.
const NODE: &str = "node";
const LEASE: &str = "lease";

pub(in crate::cluster) struct NodeConnection(pub(in crate::cluster) Connection);

impl NodeConnection {
    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        subject: &'static str,
        conduct: Conduct,
        effect: impl FnOnce(FakeCluster) -> std::result::Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let call = Call::new(name, subject, conduct).within(PATIENCE);
        let cluster = self.0.cluster.clone();
        let answer = self.0.line.call(call, async move { effect(cluster) }).await;
        answer.map_err(|failure: Failure| failure.about(name, subject.to_owned()))
    }
}

#[async_trait]
impl NodeObject for NodeConnection {
    async fn create(&self, node: &Node) -> Result<Registration> {
        let node = node.clone();
        let create = move |cluster: FakeCluster| cluster.create_node(node);
        self.call("CreateNode", NODE, Conduct::Change, create).await
    }

    async fn read(&self) -> Result<Node> {
        self.call("GetNode", NODE, Conduct::Read, |cluster| cluster.read_node()).await
    }

    async fn patch(&self, patch: &Value) -> Result<Node> {
        let patch = patch.clone();
        let change = move |cluster: FakeCluster| cluster.patch_node(&patch);
        self.call("PatchNode", NODE, Conduct::Change, change).await
    }

    fn states(&self) -> NodeStates {
        let newest = self.0.cluster.0.newest.subscribe();
        let watch = Watch { connection: self.0.clone(), newest, has_told: false, told: None };
        stream::unfold(watch, |mut watch| async { Some((watch.next().await, watch)) }).boxed()
    }

    async fn lease(&self) -> Result<Option<Lease>> {
        self.call("GetLease", LEASE, Conduct::Read, |cluster| cluster.read_lease()).await
    }

    async fn create_lease(&self, lease: &Lease) -> Result<Lease> {
        let lease = lease.clone();
        let create = move |cluster: FakeCluster| cluster.put_lease(lease);
        self.call("CreateLease", LEASE, Conduct::Change, create).await
    }

    async fn replace_lease(&self, lease: &Lease) -> Result<Lease> {
        let lease = lease.clone();
        let replace = move |cluster: FakeCluster| cluster.put_lease(lease);
        self.call("ReplaceLease", LEASE, Conduct::Change, replace).await
    }

    async fn record(&self, event: &NodeEvent) -> Result<()> {
        let event = event.clone();
        let record = move |cluster: FakeCluster| cluster.record_of_node(event);
        self.call("RecordNodeEvent", NODE, Conduct::Change, record).await
    }
}

struct Watch {
    connection: Connection,
    newest: latest::Receiver<u64>,
    /// Whether anything was told, and which state it was last.
    has_told: bool,
    told: Option<Node>,
}

impl Watch {
    async fn next(&mut self) -> Option<Node> {
        loop {
            let state = self.connection.cluster.node();
            let is_served = self.connection.cluster.serve().is_ok();
            if is_served && !(self.has_told && self.told == state) {
                if let EventFate::Late(stall) = self.connection.faults.next_event() {
                    sleep(stall).await;
                }
                (self.has_told, self.told) = (true, state.clone());
                return state;
            }
            if is_served {
                // The sender lives as long as the connection.
                self.newest.changed().await.ok();
            } else {
                sleep(PAUSE).await;
            }
        }
    }
}
