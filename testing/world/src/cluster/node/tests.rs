//! The semantics of the Node object at the server.

use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition};
use oarsman_cluster::{Cluster, ClusterError, NodeObject, Registration};
use serde_json::json;
use std::sync::Arc;

use super::merge::patched;
use crate::World;
use crate::faults::FaultPlan;
use crate::fixtures::SECOND;
use crate::link::RemoteService;
use crate::rng::Probability;

fn named(name: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    node
}

fn world() -> (World, Arc<dyn NodeObject>) {
    let world = World::new(1, FaultPlan::quiet());
    let cluster: Arc<dyn Cluster> = world.cluster_for(1);
    let node = cluster.node().unwrap();
    (world, node)
}

#[test]
fn a_patch_merges_conditions_by_type_and_replaces_addresses_when_it_says_so() {
    let address = |type_: &str, address: &str| NodeAddress {
        type_: type_.to_owned(),
        address: address.to_owned(),
    };
    let condition = |type_: &str, status: &str| NodeCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        ..NodeCondition::default()
    };
    let mut node = named("n");
    let status = node.status.get_or_insert_default();
    status.conditions = Some(vec![condition("Foreign", "True"), condition("Ready", "False")]);
    status.addresses = Some(vec![address("InternalIP", "192.0.2.1")]);
    let patch = json!({"status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [
            {"type": "InternalIP", "address": "192.0.2.2"},
            {"type": "InternalIP", "address": "192.0.2.3"},
            {"$patch": "replace"},
        ],
        "phase": null,
    }});
    let status = patched(&node, &patch).unwrap().status.unwrap();
    let wanted = vec![condition("Foreign", "True"), condition("Ready", "True")];
    assert_eq!(status.conditions, Some(wanted));
    let wanted = vec![address("InternalIP", "192.0.2.2"), address("InternalIP", "192.0.2.3")];
    assert_eq!(status.addresses, Some(wanted));
}

#[tokio::test(start_paused = true)]
async fn a_node_is_made_once_and_then_is_there() {
    let (world, object) = world();
    assert!(matches!(object.read().await, Err(ClusterError::Gone { .. })));
    let made = object.create(&named("n")).await.unwrap();
    assert!(matches!(made, Registration::Created(node) if node.metadata.uid.is_some()));
    assert_eq!(object.create(&named("n")).await, Ok(Registration::AlreadyExists));
    assert_eq!(object.read().await.ok(), world.cluster.node());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_changed_meanwhile_is_not_overwritten() {
    let (_, object) = world();
    assert_eq!(object.lease().await, Ok(None));
    let made = object.create_lease(&Default::default()).await.unwrap();
    object.replace_lease(&made).await.unwrap();
    assert!(object.replace_lease(&made).await.is_err());
    assert!(object.create_lease(&Default::default()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_while_the_server_is_away() {
    let (world, object) = world();
    world.cluster.restart(10 * SECOND, Probability::NEVER);
    assert!(matches!(object.read().await, Err(ClusterError::Unavailable { .. })));
    tokio::time::sleep(10 * SECOND).await;
    assert!(matches!(object.read().await, Err(ClusterError::Gone { .. })));
}
