//! The node's own object in the cluster, and the lease beside it.
//!
//! These calls prove that the node lives, so they are apart from those about pods and none of them waits for another. They have no
//! deadline of their own: the caller knows how long a heartbeat may take.

use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use oarsman_core::node::events::NodeEvent;
use oarsman_seam::seam;
use serde_json::Value;

use crate::Result;

/// The node's object, now and whenever it changes; none while there is none.
pub type NodeStates = BoxStream<'static, Option<Node>>;

/// What became of a registration.
#[derive(Clone, Debug, PartialEq)]
pub enum Registration {
    /// The object was made, and is this now.
    Created(Box<Node>),
    /// There may be one of that name already: it has to be read. The same holds for a node that is not allowed to create itself.
    AlreadyExists,
}

/// What the agent wants of an API server for its node.
#[seam]
pub trait NodeObject: Send + Sync + 'static {
    /// Makes the node's object.
    #[seam(call = "the creation", object = "node")]
    async fn create(&self, node: &Node) -> Result<Registration>;

    /// The node's object as it is.
    #[seam(call = "the reading", object = "node")]
    async fn read(&self) -> Result<Node>;

    /// Changes labels, annotations and status by a strategic merge patch, and returns the object as it is then.
    #[seam(call = "the patch", object = "node")]
    async fn patch(&self, patch: &Value) -> Result<Node>;

    /// The node's object whenever it changes. It may skip states, and outlives every loss of the connection.
    fn states(&self) -> NodeStates;

    /// The node's lease, if there is one.
    #[seam(call = "the reading", object = "lease")]
    async fn lease(&self) -> Result<Option<Lease>>;

    /// Makes the node's lease, and returns it as it is then.
    #[seam(call = "the creation", object = "lease")]
    async fn create_lease(&self, lease: &Lease) -> Result<Lease>;

    /// Puts this lease in the place of the one it was made from, and returns it as it is then. It fails on a conflict.
    #[seam(call = "the renewal", object = "lease")]
    async fn replace_lease(&self, lease: &Lease) -> Result<Lease>;

    /// Tells what happened to the node.
    #[seam(call = "an event", object = "node")]
    async fn record(&self, event: &NodeEvent) -> Result<()>;
}
