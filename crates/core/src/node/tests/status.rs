//! What a status holds besides amounts and conditions.

use k8s_openapi::api::core::v1::{ContainerImage, Node};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use oarsman_cri_types::v1::{Image, RuntimeFeatures};
use serde_json::json;

use super::NodeFixture;
use crate::node::{NodeStatusInput, go_architecture, images, object, status};

#[test]
fn the_rest_of_a_status_reads_as_the_go_kubelets() {
    let mut fixture = NodeFixture::new();
    fixture.machine.swap = 1 << 30;
    fixture.profile.declared_features = vec!["RestartAllContainersOnContainerExits".to_owned()];
    fixture.runtime.features =
        Some(RuntimeFeatures { supplemental_groups_policy: true, ..RuntimeFeatures::default() });
    let image = ContainerImage { names: Some(vec!["a:1".to_owned()]), size_bytes: Some(7) };
    let node = fixture.look(|input| {
        object::registered(&NodeStatusInput { images: std::slice::from_ref(&image), ..*input })
    });
    let mut status = json!(node.status);
    for part in ["addresses", "allocatable", "capacity", "conditions"] {
        assert!(status.as_object_mut().unwrap().remove(part).is_some(), "{part}");
    }
    let features = json!({"recursiveReadOnlyMounts": false, "userNamespaces": false});
    let expected = json!({
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "declaredFeatures": ["RestartAllContainersOnContainerExits"],
        "features": {"supplementalGroupsPolicy": true},
        "images": [{"names": ["a:1"], "sizeBytes": 7}],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "b",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.3",
            "machineID": "m",
            "operatingSystem": "linux",
            "osImage": "Debian",
            "swap": {"capacity": 1 << 30},
            "systemUUID": "s",
        },
        "runtimeHandlers": [
            {"features": features, "name": ""},
            {"features": features, "name": "runc"},
        ],
    });
    assert_eq!(status, expected);
}

#[test]
fn versions_of_runtimes_are_written_as_kubernetes_writes_them() {
    let rows = [
        ("v2.1.4", "2.1.4"),
        ("1.7.24~ds1", "1.7.24"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("1.33.0+k3s1", "1.33.0+k3s1"),
        ("", "Unknown"),
        ("devel", "Unknown"),
    ];
    for (told, expected) in rows {
        let mut fixture = NodeFixture::new();
        fixture.runtime.version = told.to_owned();
        let info = fixture.look(object::registered).status.unwrap().node_info.unwrap();
        assert_eq!(info.container_runtime_version, format!("containerd://{expected}"));
    }
}

#[test]
fn capacity_set_by_others_stays_and_missing_huge_page_sizes_are_dropped() {
    let mut node = Node::default();
    let amounts = [("example.com/gpu", "4"), ("hugepages-1Gi", "1Gi"), ("cpu", "64")];
    let amounts = amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
    node.status.get_or_insert_default().capacity = Some(amounts.into_iter().collect());
    let status = NodeFixture::new().look(|input| status::next(input, &node)).status.unwrap();
    for amounts in [status.capacity.unwrap(), status.allocatable.unwrap()] {
        let told = |name: &str| amounts.get(name).map(|amount| amount.0.as_str());
        assert_eq!(
            (told("example.com/gpu"), told("hugepages-1Gi"), told("cpu")),
            (Some("4"), None, Some("2"))
        );
    }
}

#[test]
fn the_largest_images_come_first_with_five_names_digests_before_tags() {
    let image = |id: &str, size, digests: usize, tags: usize| Image {
        id: id.to_owned(),
        size,
        repo_digests: (0..digests).map(|n| format!("{id}@{n}")).collect(),
        repo_tags: (0..tags).map(|n| format!("{id}:{n}")).collect(),
        ..Image::default()
    };
    let all = vec![image("b", 5, 1, 1), image("a", 5, 0, 0), image("c", 9, 3, 4)];
    let told = |most| -> Vec<(Option<i64>, String)> {
        let names = |image: &ContainerImage| image.names.clone().unwrap_or_default().join(" ");
        let node_images = images::node_images(all.clone(), most);
        node_images.iter().map(|image| (image.size_bytes, names(image))).collect()
    };
    let expected = [
        (Some(9), "c@0 c@1 c@2 c:0 c:1".to_owned()),
        (Some(5), String::new()),
        (Some(5), "b@0 b:0".to_owned()),
    ];
    assert_eq!(told(None), expected);
    assert_eq!(told(Some(1)), expected[..1]);
    assert_eq!(told(Some(0)), []);
}

#[test]
fn architectures_are_spelled_as_go_spells_them() {
    for (rust, go) in
        [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64"), ("s390x", "s390x")]
    {
        assert_eq!(go_architecture(rust), go);
    }
}
