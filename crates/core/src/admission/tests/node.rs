//! The node as admission sees it.

use k8s_openapi::api::core::v1::{Node, NodeFeatures, NodeSpec, NodeStatus, Taint};

use super::*;
use crate::node::{MachineInfo, NodeProfile};

fn own() -> AdmissionNode {
    let profile = NodeProfile {
        name: "n1".to_owned(),
        max_pods: 110,
        pods_per_core: Some(2),
        labels: [("pool".to_owned(), "a".to_owned())].into(),
        ..NodeProfile::default()
    };
    let machine = MachineInfo {
        cpus: 4,
        memory: 1 << 30,
        architecture: "amd64".to_owned(),
        ..MachineInfo::default()
    };
    AdmissionNode::of_machine(&profile, &machine)
}

#[test]
fn without_an_api_server_a_node_has_the_labels_taints_and_amounts_of_its_own_facts() {
    let node = own();
    let label = |key: &str| node.labels.get(key).map(String::as_str);
    let labels = ["pool", "kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/hostname"];
    assert_eq!(labels.map(label), [Some("a"), Some("linux"), Some("amd64"), Some("n1")]);
    let amounts = ["cpu", "memory", "pods"].map(|name| node.allocatable[name].units());
    assert_eq!(amounts, [4, 1 << 30, 8]);
}

#[test]
fn the_api_server_adds_labels_taints_and_extended_resources_but_no_amounts_of_our_own() {
    let wire = |amount: &str| WireQuantity(amount.to_owned());
    let amounts = [("cpu", "64"), ("example.com/dongle", "3"), ("hugepages-2Mi", "1Gi")];
    let taint = Taint { key: "k".to_owned(), effect: "NoExecute".to_owned(), ..Taint::default() };
    let mut object = Node {
        spec: Some(NodeSpec { taints: Some(vec![taint.clone()]), ..NodeSpec::default() }),
        status: Some(NodeStatus {
            allocatable: Some(amounts.map(|(name, of)| (name.to_owned(), wire(of))).into()),
            features: Some(NodeFeatures { supplemental_groups_policy: Some(true) }),
            ..NodeStatus::default()
        }),
        ..Node::default()
    };
    let labels = [("disk", "ssd"), ("kubernetes.io/os", "plan9")];
    object.metadata.labels =
        Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let node = own().with_object(&object, NodeObjectState::Watched);
    assert_eq!(
        (node.labels["disk"].as_str(), node.labels["kubernetes.io/os"].as_str()),
        ("ssd", "linux")
    );
    assert_eq!(node.labels.get("pool"), None, "its object has it no more");
    assert_eq!(node.taints, [taint]);
    let amount = |name: &str| node.allocatable.get(name).map(Quantity::units);
    let amounts = ["cpu", "example.com/dongle", "hugepages-2Mi"].map(amount);
    assert_eq!(amounts, [Some(4), Some(3), None]);
    assert_eq!(node.supplemental_groups_policy, Some(true));
}
