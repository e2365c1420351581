//! A node's status, made anew each time over what the API server has of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeDaemonEndpoints, NodeFeatures, NodeRuntimeHandler,
    NodeRuntimeHandlerFeatures, NodeStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use oarsman_cri_types::v1::RuntimeHandler;

use super::amounts::{NodeResourceList, allocatable, capacity};
use super::{NodeStatusInput, addresses, conditions, info, object};
use crate::quantity::Quantity;
use crate::resources::hugepages;

/// The object as it should be now. What is not the node's own to say stays as it is.
pub fn next(input: &NodeStatusInput<'_>, before: &Node) -> Node {
    let mut node = before.clone();
    object::label_system(&mut node.metadata, input.machine);
    let provided = addresses::provided(input.profile);
    object::annotate(&mut node.metadata, addresses::PROVIDED, provided.as_deref());
    node.status = Some(status(input, before.status.clone().unwrap_or_default()));
    node
}

fn status(input: &NodeStatusInput<'_>, before: NodeStatus) -> NodeStatus {
    let addresses = addresses::next(input, before.addresses.as_deref().unwrap_or_default());
    let capacity = all_capacity(input, before.capacity.as_ref());
    let allocatable = allocatable(&input.profile.reserved, &capacity);
    let port = input.profile.port;
    let mut status = NodeStatus {
        addresses: some(addresses),
        capacity: Some(wire(&capacity)),
        allocatable: Some(wire(&allocatable)),
        daemon_endpoints: Some(NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint { port }).filter(|_| port > 0),
        }),
        node_info: Some(info::info(input)),
        images: some(input.images.to_vec()),
        runtime_handlers: some(input.runtime.handlers.iter().map(handler).collect()),
        features: input.runtime.features.as_ref().map(|features| NodeFeatures {
            supplemental_groups_policy: Some(features.supplemental_groups_policy),
        }),
        declared_features: some(input.profile.declared_features.clone()),
        volumes_in_use: None,
        ..before
    };
    conditions::set(input, &mut status);
    status
}

/// No device that an agent before this one advertised is served by this one.
pub(super) fn zero_extended_resources(status: &mut NodeStatus) {
    let amounts = [&mut status.capacity, &mut status.allocatable];
    for (name, amount) in amounts.into_iter().flatten().flatten() {
        if is_extended(name) {
            *amount = Quantity::ZERO.to_wire();
        }
    }
}

/// Names with a domain are not Kubernetes' own, unless the domain is.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// What the node has, and what others said it has: devices and the like. Sizes of huge pages that are gone are dropped.
fn all_capacity(
    input: &NodeStatusInput<'_>,
    before: Option<&BTreeMap<String, WireQuantity>>,
) -> NodeResourceList {
    let others = before.into_iter().flatten();
    let others = others.filter(|(name, _)| !hugepages::is_resource(name));
    let others = others.filter_map(|(name, amount)| {
        Quantity::try_from(amount).ok().map(|amount| (name.clone(), amount))
    });
    let mut amounts: NodeResourceList = others.collect();
    amounts.extend(capacity(input.profile, input.machine));
    amounts
}

fn wire(amounts: &NodeResourceList) -> BTreeMap<String, WireQuantity> {
    amounts.iter().map(|(name, amount)| (name.clone(), amount.to_wire())).collect()
}

fn handler(handler: &RuntimeHandler) -> NodeRuntimeHandler {
    let features = handler.features.unwrap_or_default();
    NodeRuntimeHandler {
        // The one without a name is told with an empty one.
        name: Some(handler.name.clone()),
        features: Some(NodeRuntimeHandlerFeatures {
            recursive_read_only_mounts: Some(features.recursive_read_only_mounts),
            user_namespaces: Some(features.user_namespaces),
        }),
    }
}

/// The API server drops empty lists, so that saying one would look like a difference for ever.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}
