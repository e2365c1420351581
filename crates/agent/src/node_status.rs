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
use tokio::sync::Mutex;

use crate::latest;
use crate::node::{Node, NodeIdentity};
use crate::tasks::Tasks;

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
struct Office {
    node: Arc<Node>,
    membership: Membership,
    object: Arc<dyn NodeObject>,
    identity: latest::Sender<Option<NodeIdentity>>,
    health: latest::Sender<Health>,
    /// None before they were listed.
    images: latest::Sender<Option<Vec<ContainerImage>>>,
    events: Events,
}

/// Starts the loops that look after the node's object; none for a node that belongs to no cluster.
pub(crate) fn spawn(
    tasks: &mut Tasks,
    node: &Arc<Node>,
    identity: latest::Sender<Option<NodeIdentity>>,
) {
    let object = node.seams.cluster.node();
    let (Some(membership), Some(object)) = (node.config.membership.clone(), object) else {
        // Whatever waits for the identity waits for ever, rather than to be told that there will never be one.
        tasks.spawn("node status", move || {
            let _identity = &identity;
            pending()
        });
        return;
    };
    let (events, waiting) = Events::new(&membership.profile.name);
    let (node, waiting) = (Arc::clone(node), Arc::new(Mutex::new(waiting)));
    let office = Arc::new(Office {
        node,
        membership,
        object,
        identity,
        health: latest::Sender::new(Health::default()),
        images: latest::Sender::new(None),
        events,
    });
    let of = Arc::clone(&office);
    tasks.spawn("runtime health", move || health::follow(Arc::clone(&of)));
    let of = Arc::clone(&office);
    tasks.spawn("image list", move || images::follow(Arc::clone(&of)));
    let of = Arc::clone(&office);
    tasks.spawn("node status", move || Reporter::new(Arc::clone(&of)).run());
    let of = Arc::clone(&office);
    tasks.spawn("node lease", move || lease::keep(Arc::clone(&of)));
    tasks.spawn("node events", move || events::run(Arc::clone(&office), Arc::clone(&waiting)));
}
