//! Registration, and what is put right in an object that is there.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Taint};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::{NodeFixture, ip};
use crate::node::{change, object, status};

fn labels(node: &Node) -> BTreeMap<&str, &str> {
    let labels = node.metadata.labels.iter().flatten();
    labels.map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), ..Taint::default() }
}

fn annotations(node: &Node) -> Vec<(&str, &str)> {
    let annotations = node.metadata.annotations.iter().flatten();
    annotations.map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

const ATTACHES: (&str, &str) = ("volumes.kubernetes.io/controller-managed-attach-detach", "true");

#[test]
fn a_node_registers_with_its_labels_and_those_it_is_given() {
    let mut fixture = NodeFixture::new();
    let given = [("node.kubernetes.io/pool", "a"), ("kubernetes.io/arch", "sparc")];
    fixture.profile.labels =
        given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    fixture.profile.provider_id = Some("cloud://1".to_owned());
    let node = fixture.look(object::registered);
    let expected = BTreeMap::from([
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        // Operating system and architecture cannot be overridden.
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", "n1"),
        ("kubernetes.io/os", "linux"),
        ("node.kubernetes.io/pool", "a"),
    ]);
    assert_eq!(labels(&node), expected);
    assert_eq!(annotations(&node), [ATTACHES]);
    assert_eq!(node.spec.unwrap().provider_id.as_deref(), Some("cloud://1"));
}

#[test]
fn a_node_that_is_registered_already_has_no_devices_until_a_plugin_says_so() {
    let fixture = NodeFixture::new();
    let mut there = fixture.look(object::registered);
    let status = there.status.as_mut().unwrap();
    let resources = ["example.com/gpu", "attachable.kubernetes.io/disk"];
    for amounts in [&mut status.capacity, &mut status.allocatable].into_iter().flatten() {
        amounts.extend(resources.map(|name| (name.to_owned(), WireQuantity("2".to_owned()))));
    }
    let amounts = |node: &Node, name: &str| {
        let status = node.status.as_ref().unwrap();
        let of =
            |amounts: &Option<BTreeMap<_, WireQuantity>>| amounts.as_ref().unwrap()[name].0.clone();
        [of(&status.capacity), of(&status.allocatable)]
    };
    let right = fixture.look(|scene| object::reconciled(scene, &there));
    assert_eq!(amounts(&right, "example.com/gpu"), ["0", "0"]);
    assert_eq!(amounts(&right, "attachable.kubernetes.io/disk"), ["2", "2"], "not a device");
    // What an administrator advertises afterwards stays.
    let next = fixture.look(|scene| status::next(scene, &there));
    assert_eq!(amounts(&next, "example.com/gpu"), ["2", "2"]);
}

#[test]
fn taints_are_those_it_is_given_and_that_of_a_cloud_to_come() {
    let given = taint("dedicated", "NoExecute");
    let cloud = Taint {
        value: Some("true".to_owned()),
        ..taint("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule")
    };
    let table = [
        (vec![], false, None),
        (vec![given.clone()], false, Some(vec![given.clone()])),
        (vec![given.clone()], true, Some(vec![given, cloud.clone()])),
        (vec![], true, Some(vec![cloud])),
    ];
    for (taints, has_cloud, expected) in table {
        let mut fixture = NodeFixture::new();
        (fixture.profile.taints, fixture.profile.has_cloud) = (taints, has_cloud);
        assert_eq!(fixture.look(object::registered).spec.unwrap().taints, expected);
    }
}

#[test]
fn addresses_are_the_nodes_own_unless_a_cloud_knows_better() {
    let listed = |node: &Node| -> Vec<String> {
        let addresses = node.status.as_ref().and_then(|status| status.addresses.clone());
        let spell =
            |a: k8s_openapi::api::core::v1::NodeAddress| format!("{} {}", a.type_, a.address);
        addresses.unwrap_or_default().into_iter().map(spell).collect()
    };
    let mut fixture = NodeFixture::new();
    fixture.addresses = vec![ip("192.0.2.1"), ip("2001:db8::1")];
    let own = ["InternalIP 192.0.2.1", "InternalIP 2001:db8::1", "Hostname n1"];
    assert_eq!(listed(&fixture.look(object::registered)), own);

    fixture.profile.has_cloud = true;
    let unknown = fixture.look(object::registered);
    assert_eq!(listed(&unknown), ["Hostname n1"], "the cloud has not chosen one");
    assert_eq!(annotations(&unknown), [ATTACHES]);

    fixture.profile.given_addresses = fixture.addresses.clone();
    let mut node = fixture.look(object::registered);
    assert_eq!(listed(&node), own);
    let provided = ("alpha.kubernetes.io/provided-node-ip", "192.0.2.1,2001:db8::1");
    assert_eq!(annotations(&node), [provided, ATTACHES]);

    node.status.as_mut().unwrap().addresses.as_mut().unwrap()[0].address = "203.0.113.1".to_owned();
    let after = fixture.look(|input| status::next(input, &node));
    assert_eq!(listed(&after)[0], "InternalIP 203.0.113.1", "the cloud's word stays");

    fixture.profile.has_cloud = false;
    let after = fixture.look(|input| status::next(input, &after));
    assert_eq!(
        (listed(&after), annotations(&after)),
        (own.map(str::to_owned).to_vec(), vec![ATTACHES])
    );
}

#[test]
fn an_object_that_is_there_keeps_its_taints_and_labels_and_gets_the_default_ones() {
    let mut fixture = NodeFixture::new();
    fixture.profile.labels = BTreeMap::from([
        ("pool".to_owned(), "b".to_owned()),
        ("topology.kubernetes.io/zone".to_owned(), "z1".to_owned()),
    ]);
    fixture.profile.taints = vec![taint("new", "NoSchedule")];
    let mut there = Node::default();
    there.metadata.labels = Some(BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), "old".to_owned()),
        ("pool".to_owned(), "a".to_owned()),
    ]));
    there.spec.get_or_insert_default().taints = Some(vec![taint("old", "NoSchedule")]);
    let right = fixture.look(|input| object::reconciled(input, &there));
    let labels = labels(&right);
    assert_eq!((labels["kubernetes.io/hostname"], labels["pool"]), ("n1", "a"));
    assert_eq!(labels["topology.kubernetes.io/zone"], "z1");
    assert_eq!(right.spec, there.spec);
    assert!(change::differs(&there, &right));

    fixture.profile.controller_attaches = false;
    let after = fixture.look(|input| object::reconciled(input, &right));
    assert_eq!(annotations(&after), []);
    let again = fixture.look(|input| object::reconciled(input, &after));
    assert!(!change::differs(&after, &again));
}
