//! Differences, and the patches that make up for them.

use k8s_openapi::api::core::v1::{Node, NodeAddress};
use serde_json::json;

use super::{NodeFixture, ip};
use crate::node::{change, object, status};

fn again(fixture: &NodeFixture, node: &Node) -> Node {
    fixture.look(|input| status::next(input, node))
}

#[test]
fn a_heartbeat_alone_is_no_change() {
    let mut fixture = NodeFixture::new();
    let node = fixture.look(object::registered);
    fixture.at = 20;
    let later = again(&fixture, &node);
    assert_ne!(node, later);
    assert!(!change::differs(&node, &later));
    let patch = change::patch(&node, &later);
    assert_eq!(patch.as_object().unwrap().len(), 1, "{patch}");
    let status = patch["status"].as_object().unwrap();
    assert_eq!(status.keys().collect::<Vec<_>>(), ["conditions"]);
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 4);
    assert_eq!(conditions[3]["lastHeartbeatTime"], "2027-01-01T00:00:20Z");
    assert_eq!(conditions[3]["lastTransitionTime"], "2027-01-01T00:00:00Z");
    assert_eq!(conditions[3]["status"], "True");
}

#[test]
fn what_changed_is_patched_and_nothing_else() {
    let mut fixture = NodeFixture::new();
    let mut node = fixture.look(object::registered);
    node.metadata
        .labels
        .as_mut()
        .unwrap()
        .insert("kubernetes.io/arch".to_owned(), "arm64".to_owned());
    fixture.machine.memory = 2 << 30;
    fixture.machine.hugepages.insert(2 << 20, 1);
    fixture.machine.boot_id = "c".to_owned();
    fixture.profile.port = 0;
    let later = again(&fixture, &node);
    assert!(change::differs(&node, &later));
    let mut patch = change::patch(&node, &later);
    patch["status"].as_object_mut().unwrap().remove("conditions");
    let expected = json!({
        "metadata": {"labels": {"kubernetes.io/arch": "amd64"}},
        "status": {
            "capacity": {"memory": "2Gi", "hugepages-2Mi": "2Mi"},
            "allocatable": {"memory": "2046Mi", "hugepages-2Mi": "2Mi"},
            "nodeInfo": {"bootID": "c"},
            "daemonEndpoints": {"kubeletEndpoint": null},
        },
    });
    assert_eq!(patch, expected);
}

#[test]
fn what_is_gone_is_taken_away_by_its_name() {
    let mut fixture = NodeFixture::new();
    fixture.machine.hugepages.insert(2 << 20, 1);
    let node = fixture.look(object::registered);
    fixture.machine.hugepages.clear();
    fixture.profile.controller_attaches = false;
    let later = fixture.look(|input| object::reconciled(input, &node));
    let patch = change::patch(&node, &later);
    assert_eq!(patch["status"]["capacity"], json!({"hugepages-2Mi": null}));
    let annotation = "volumes.kubernetes.io/controller-managed-attach-detach";
    assert_eq!(patch["metadata"]["annotations"], json!({annotation: null}));
}

#[test]
fn addresses_are_replaced_as_one_list() {
    let mut fixture = NodeFixture::new();
    let mut node = fixture.look(object::registered);
    fixture.addresses = vec![ip("192.0.2.7"), ip("2001:db8::7")];
    let patch = change::patch(&node, &again(&fixture, &node));
    let mut expected = json!([
        {"type": "InternalIP", "address": "192.0.2.7"},
        {"type": "InternalIP", "address": "2001:db8::7"},
        {"type": "Hostname", "address": "n1"},
        {"$patch": "replace"},
    ]);
    assert_eq!(patch["status"]["addresses"], expected);
    node.status.as_mut().unwrap().addresses = None;
    let patch = change::patch(&node, &again(&fixture, &node));
    expected.as_array_mut().unwrap().pop();
    assert_eq!(patch["status"]["addresses"], expected);
}

#[test]
fn what_others_do_to_a_node_is_no_difference_of_ours() {
    let fixture = NodeFixture::new();
    let mut node = fixture.look(object::registered);
    node.metadata.resource_version = Some("7".to_owned());
    node.spec.get_or_insert_default().unschedulable = Some(true);
    node.status.as_mut().unwrap().conditions.as_mut().unwrap().reverse();
    assert!(!change::differs(&node, &again(&fixture, &node)));
    let foreign = NodeAddress { type_: "ExternalIP".to_owned(), address: "203.0.113.9".to_owned() };
    node.status.as_mut().unwrap().addresses.as_mut().unwrap().push(foreign);
    assert!(
        change::differs(&node, &again(&fixture, &node)),
        "but addresses are ours without a cloud"
    );
}
