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
mod retry;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerImage;
use oarsman_cluster::NodeObject;
use oarsman_core::admission::AdmissionNode;
use oarsman_core::node::{MachineInfo, NodeProfile};
use oarsman_sync::{TaskName, Tasks};

use crate::node::{AgentContext, NodeIdentity};
use crate::ordered_watch;

pub(crate) use events::NodeEventSender;
use reporter::NodeStatusReporter;

/// How the node registers with the API server and reports its status.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatusConfig {
    /// What the configuration says of the node.
    pub profile: NodeProfile,
    /// What is known of the machine.
    pub machine: MachineInfo,
    /// Whether the agent creates the node's object itself (`--register-node`).
    pub registers: bool,
    /// How often the status is computed (`nodeStatusUpdateFrequency`).
    pub look: Duration,
    /// How often an unchanged status is sent (`nodeStatusReportFrequency`).
    pub report: Duration,
    /// The duration of the lease (`nodeLeaseDurationSeconds`).
    pub lease: Duration,
}

impl NodeStatusConfig {
    /// The deadline of heartbeat calls: a longer one would delay the next heartbeat.
    fn deadline(&self) -> Duration {
        self.look.min(self.lease)
    }
}

/// Where the loops publish what they learn of the node.
pub(crate) struct NodePublishers {
    /// Name and UID.
    pub(crate) identity: ordered_watch::Sender<Option<NodeIdentity>>,
    /// What pods are admitted by.
    pub(crate) admission_node: ordered_watch::Sender<AdmissionNode>,
}

/// What the loops share.
struct NodeStatusContext {
    node: Arc<AgentContext>,
    node_status_config: NodeStatusConfig,
    object: Arc<dyn NodeObject>,
    identity: ordered_watch::Sender<Option<NodeIdentity>>,
    admission_node: ordered_watch::Sender<AdmissionNode>,
    /// None before they were listed.
    images: ordered_watch::Sender<Option<Vec<ContainerImage>>>,
}

/// Starts the loops that look after the node's object; none for a node that belongs to no cluster.
pub(crate) fn spawn(tasks: &mut Tasks, node: &Arc<AgentContext>, published: NodePublishers) {
    let NodePublishers { identity, admission_node } = published;
    let object = node.seams.cluster.node();
    let (Some(node_status_config), Some(object)) = (node.config.node_status_config.clone(), object)
    else {
        // Tasks that wait for the identity wait for ever; a closed channel would end them.
        tasks.spawn(TaskName::NodeStatus, move || {
            let _published = (&identity, &admission_node);
            pending()
        });
        return;
    };
    let node = Arc::clone(node);
    let context = Arc::new(NodeStatusContext {
        node,
        node_status_config,
        object,
        identity,
        admission_node,
        images: ordered_watch::Sender::new(None),
    });
    let of = Arc::clone(&context);
    tasks.spawn(TaskName::RuntimeHealth, move || health::run(Arc::clone(&of)));
    let of = Arc::clone(&context);
    tasks.spawn(TaskName::ImageList, move || images::run(Arc::clone(&of)));
    let of = Arc::clone(&context);
    tasks.spawn(TaskName::NodeStatus, move || NodeStatusReporter::new(Arc::clone(&of)).run());
    let of = Arc::clone(&context);
    tasks.spawn(TaskName::NodeLease, move || lease::run(Arc::clone(&of)));
    tasks.spawn(TaskName::NodeEvents, move || events::run(Arc::clone(&context)));
}
