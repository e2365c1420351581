//! The node's object, its status and its lease.
//!
//! Five loops that do not wait for each other: runtime health, image list, node status, lease renewal and events. A call that hangs
//! delays only its own loop, and no pod waits for any of them.

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

/// How the node registers with the API server and reports its status.
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// What the configuration says of the node.
    pub profile: Profile,
    /// What is known of the machine.
    pub machine: Machine,
    /// Whether the agent creates the node's object itself (`--register-node`).
    pub registers: bool,
    /// How often the status is computed (`nodeStatusUpdateFrequency`).
    pub look: Duration,
    /// How often an unchanged status is sent (`nodeStatusReportFrequency`).
    pub report: Duration,
    /// The duration of the lease (`nodeLeaseDurationSeconds`).
    pub lease: Duration,
}

impl Membership {
    /// The deadline of heartbeat calls: a longer one would delay the next heartbeat.
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
        // Tasks that wait for the identity wait for ever; a closed channel would end them.
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
