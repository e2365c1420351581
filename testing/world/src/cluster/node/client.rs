//! The Node object for an agent: every call goes over the link of its incarnation.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use oarsman_cluster::{NodeObject, NodeObjectLayer, NodeStates, Registration, Result};
use oarsman_core::node::events::NodeEvent;
use oarsman_sync::ordered_watch;
use serde_json::Value;
use tokio::time::sleep;

use super::super::FakeCluster;
use super::super::client::{ClusterLink, MAX_WAIT, policy};
use super::super::watch::PAUSE;
use crate::faults::EventDelivery;
use crate::link::LinkMiddleware;

/// The object of calls, for errors.
const NODE: &str = "node";
const LEASE: &str = "lease";

/// The seam over a link.
pub(in crate::cluster) struct LinkedNode {
    inner: Arc<dyn NodeObject>,
    middleware: LinkMiddleware,
    connection: ClusterLink,
}

impl LinkedNode {
    pub(in crate::cluster) fn over(connection: ClusterLink) -> Arc<dyn NodeObject> {
        let inner = Arc::new(NodeBackend(connection.cluster.clone()));
        let middleware = LinkMiddleware::new(connection.link.clone(), MAX_WAIT, policy);
        Arc::new(Self { inner, middleware, connection })
    }
}

#[async_trait]
impl NodeObjectLayer for LinkedNode {
    type Middleware = LinkMiddleware;

    fn inner(&self) -> &Arc<dyn NodeObject> {
        &self.inner
    }

    fn middleware(&self) -> &LinkMiddleware {
        &self.middleware
    }

    fn states(&self) -> NodeStates {
        let newest = self.connection.cluster.0.newest.subscribe();
        let connection = self.connection.clone();
        let watch = NodeWatch { connection, newest, has_told: false, told: None };
        stream::unfold(watch, |mut watch| async { Some((watch.next().await, watch)) }).boxed()
    }
}

/// What calls do at the server. It has no watch: that runs over the link.
struct NodeBackend(FakeCluster);

#[async_trait]
impl NodeObject for NodeBackend {
    async fn create(&self, node: &Node) -> Result<Registration> {
        self.0.create_node(node.clone()).map_err(|failure| failure.about("the creation", NODE))
    }

    async fn read(&self) -> Result<Node> {
        self.0.read_node().map_err(|failure| failure.about("the reading", NODE))
    }

    async fn patch(&self, patch: &Value) -> Result<Node> {
        self.0.patch_node(patch).map_err(|failure| failure.about("the patch", NODE))
    }

    fn states(&self) -> NodeStates {
        stream::pending().boxed()
    }

    async fn lease(&self) -> Result<Option<Lease>> {
        self.0.read_lease().map_err(|failure| failure.about("the reading", LEASE))
    }

    async fn create_lease(&self, lease: &Lease) -> Result<Lease> {
        self.0.put_lease(lease.clone()).map_err(|failure| failure.about("the creation", LEASE))
    }

    async fn replace_lease(&self, lease: &Lease) -> Result<Lease> {
        self.0.put_lease(lease.clone()).map_err(|failure| failure.about("the renewal", LEASE))
    }

    async fn record(&self, event: &NodeEvent) -> Result<()> {
        self.0.record_of_node(event.clone()).map_err(|failure| failure.about("an event", NODE))
    }
}

struct NodeWatch {
    connection: ClusterLink,
    newest: ordered_watch::Receiver<u64>,
    /// Whether a state was delivered, and the last one.
    has_told: bool,
    told: Option<Node>,
}

impl NodeWatch {
    async fn next(&mut self) -> Option<Node> {
        loop {
            let state = self.connection.cluster.node();
            let is_served = self.connection.cluster.check_available().is_ok();
            if is_served && !(self.has_told && self.told == state) {
                if let EventDelivery::Late(stall) = self.connection.faults.next_event() {
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
