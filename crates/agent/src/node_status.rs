//! The node's own part in a cluster: its object, its status and its lease.
//!
//! Five loops that wait for nothing of each other: one asks the runtime how it is, one lists images, one tells the API server how the
//! node is, one renews the lease, one tells events. A call that hangs delays only itself, and no pod waits for any of them.

mod deadline;
mod events;
mod health;
mod images;
mod lease;
mod reporter;
mod tries;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerImage;
use oarsman_cluster::NodeObject;
use oarsman_core::node::runtime::Health;
use oarsman_core::node::{Machine, Profile};

use crate::latest;
use crate::node::{Node, NodeIdentity};

use events::Events;
use reporter::Reporter;

/// What the node is to the cluster it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// What it is told to be.
    pub profile: Profile,
    /// What it stands on.
    pub machine: Machine,
    /// Whether it makes its object itself; else somebody else does.
    pub registers: bool,
    /// How often it looks at itself.
    pub look: Duration,
    /// How often it tells a status that did not change.
    pub report: Duration,
    /// How long its lease lasts.
    pub lease: Duration,
}

impl Membership {
    /// How long a call that proves that we live may take: later ones would come too late otherwise.
    fn deadline(&self) -> Duration {
        self.look.min(self.lease)
    }
}

/// What the loops share.
struct Office<'a> {
    node: &'a Node,
    membership: &'a Membership,
    object: Arc<dyn NodeObject>,
    identity: latest::Sender<Option<NodeIdentity>>,
    health: latest::Sender<Health>,
    /// None before they were listed.
    images: latest::Sender<Option<Vec<ContainerImage>>>,
    events: Events,
}

/// Looks after the node's object for ever; does nothing for a node that belongs to no cluster.
pub(crate) async fn run(node: Arc<Node>, identity: latest::Sender<Option<NodeIdentity>>) {
    let object = node.seams.cluster.node();
    let (Some(membership), Some(object)) = (&node.config.membership, object) else {
        // Whoever waits for the identity waits for ever, rather than to be told that nobody will ever know.
        let _identity = identity;
        return pending().await;
    };
    let (events, waiting) = Events::new();
    let office = Office {
        node: &node,
        membership,
        object,
        identity,
        health: latest::Sender::new(Health::default()),
        images: latest::Sender::new(None),
        events,
    };
    tokio::join!(
        health::follow(&office),
        images::follow(&office),
        Reporter::new(&office).run(),
        lease::keep(&office),
        events::run(&office, waiting),
    );
}
