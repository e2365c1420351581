//! Events of the node.

use std::fmt;

use k8s_openapi::api::core::v1::{Node, NodeCondition};

use super::conditions;
use crate::event::EventKind;

/// Something that happened to the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// `Normal` or `Warning`.
    pub kind: EventKind,
    /// The one word that tools match on, such as `NodeReady`.
    pub reason: &'static str,
    /// The sentence that a person reads.
    pub message: String,
}

/// The event `Starting` of an agent that has begun.
pub fn starting() -> NodeEvent {
    let message = "Starting kubelet.".to_owned();
    NodeEvent { kind: EventKind::Normal, reason: "Starting", message }
}

/// The machine's control groups are of the old kind.
pub fn old_cgroups() -> NodeEvent {
    let message = "cgroup v1 detected: support for it is deprecated, and goes with a future release. Boot with cgroup v2.";
    NodeEvent { kind: EventKind::Warning, reason: "CgroupV1", message: message.to_owned() }
}

/// Images could not be removed, twice in a row.
pub fn image_gc_failed(error: impl fmt::Display) -> NodeEvent {
    NodeEvent { kind: EventKind::Warning, reason: "ImageGCFailed", message: error.to_string() }
}

/// There are not enough images that may go.
pub fn free_disk_space_failed(error: impl fmt::Display) -> NodeEvent {
    let message = error.to_string();
    NodeEvent { kind: EventKind::Warning, reason: "FreeDiskSpaceFailed", message }
}

/// The size of the disk of images is not known.
pub fn invalid_disk_capacity(error: impl fmt::Display) -> NodeEvent {
    let message = error.to_string();
    NodeEvent { kind: EventKind::Warning, reason: "InvalidDiskCapacity", message }
}

/// What happened between two states of the object; before there was any, nothing was said of it.
pub fn between(before: Option<&Node>, after: &Node) -> Vec<NodeEvent> {
    let name = after.metadata.name.as_deref().unwrap_or_default();
    let changed_conditions = changed_conditions(before, after).map(|reason| NodeEvent {
        kind: EventKind::Normal,
        reason,
        message: format!("Node {name} status is now: {reason}"),
    });
    rebooted(name, before, after).into_iter().chain(changed_conditions).collect()
}

/// The event for a node that was cordoned or uncordoned.
pub fn cordoned(name: &str, was: bool, is: bool) -> Option<NodeEvent> {
    let reason = if is { "NodeNotSchedulable" } else { "NodeSchedulable" };
    let message = format!("Node {name} status is now: {reason}");
    (was != is).then_some(NodeEvent { kind: EventKind::Normal, reason, message })
}

fn changed_conditions(before: Option<&Node>, after: &Node) -> impl Iterator<Item = &'static str> {
    conditions::types().filter_map(move |type_| {
        let now = condition(after, type_)?;
        let was = before.and_then(|before| condition(before, type_));
        let is_new = was.is_none_or(|was| was.status != now.status);
        conditions::event(type_, &now.status).filter(|_| is_new)
    })
}

fn condition<'n>(node: &'n Node, type_: &str) -> Option<&'n NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

fn rebooted(name: &str, before: Option<&Node>, after: &Node) -> Option<NodeEvent> {
    let was = before.and_then(boot_id).filter(|id| !id.is_empty())?;
    let is = boot_id(after)?;
    let message = format!("Node {name} has been rebooted, boot id: {is}");
    (was != is).then_some(NodeEvent { kind: EventKind::Warning, reason: "Rebooted", message })
}

fn boot_id(node: &Node) -> Option<&str> {
    Some(node.status.as_ref()?.node_info.as_ref()?.boot_id.as_str())
}
