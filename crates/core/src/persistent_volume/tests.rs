//! Claims that are bound, not bound, gone, another's and on another node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::cri_spec::{PodPaths, VolumePath};
use crate::ids::PodUid;

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A pod whose container uses its volume `data` in this field.
fn pod_using(field: &str, source: &Value) -> Pod {
    let mut volume = json!({"name": "data"});
    volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    let used = json!([{"name": "data", "mountPath": "/data", "devicePath": "/dev/data"}]);
    object(json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web"},
        "spec": {"containers": [{"name": "main", field: used}], "volumes": [volume]},
    }))
}

fn pod() -> Pod {
    pod_using("volumeMounts", &json!({"persistentVolumeClaim": {"claimName": "disk"}}))
}

fn ephemeral_pod() -> Pod {
    pod_using("volumeMounts", &json!({"ephemeral": {}}))
}

fn claim(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "uid": "claim-1"},
        "spec": {"volumeName": "pv-1"},
        "status": {"phase": "Bound"},
    })
}

fn volume(source: &Value) -> Value {
    let mut spec = json!({"claimRef": {"uid": "claim-1"}, "accessModes": ["ReadWriteOnce"]});
    spec.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    json!({"metadata": {"name": "pv-1"}, "spec": spec})
}

fn local() -> Value {
    volume(&json!({"local": {"path": "/mnt/disks/1"}}))
}

fn lookup(claims: &[Value], volumes: &[Value]) -> Lookup {
    let claim = |value: &Value| {
        let claim: PersistentVolumeClaim = object(value.clone());
        let name = claim.metadata.name.clone().unwrap_or_default();
        (FullName { name, namespace: "shop".to_owned() }, Arc::new(claim))
    };
    let volume = |value: &Value| {
        let volume: PersistentVolume = object(value.clone());
        (volume.metadata.name.clone().unwrap_or_default(), Arc::new(volume))
    };
    Lookup {
        claims: claims.iter().map(claim).collect(),
        persistent_volumes: volumes.iter().map(volume).collect(),
        ..Lookup::default()
    }
}

fn with(mut value: Value, pointer: &str, new: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match new {
        Value::Null => drop(parent.remove(key)),
        new => drop(parent.insert(key.to_owned(), new)),
    }
    value
}

fn node() -> AdmissionNode {
    let labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    AdmissionNode { name: "n1".to_owned(), labels, ..AdmissionNode::default() }
}

fn on_node(node: Option<&AdmissionNode>) -> ClaimContext<'_> {
    ClaimContext { node, pod_runs: false }
}

/// The one claimed volume, or what is said of it.
fn resolve(pod: &Pod, lookup: &Lookup, context: ClaimContext<'_>) -> Result<ClaimedVolume, String> {
    let (mut volumes, mut faults) = claimed_volumes(pod, lookup, context);
    assert_eq!(volumes.len() + faults.len(), 1, "{volumes:?} {faults:?}");
    match faults.pop() {
        Some(fault) => Err(fault.to_string()),
        None => Ok((*volumes.remove("data").unwrap()).clone()),
    }
}

#[test]
fn a_claim_must_be_there_bound_and_the_one_that_its_volume_is_bound_to() {
    let (bound, local) = (claim("disk"), [local()]);
    let with_claim = |at: &str, value: Value| [with(bound.clone(), at, value)];
    let only = [bound.clone()];
    let unclaimed = [with(local[0].clone(), "/spec/claimRef", Value::Null)];
    let rows: [(&[Value], &[Value], &str); 9] = [
        (
            &[],
            &[],
            "error processing PVC shop/disk: failed to fetch PVC from API server: not found",
        ),
        (&with_claim("/status/phase", json!("Pending")), &local, "PVC is not bound"),
        (&with_claim("/status", Value::Null), &local, "PVC is not bound"),
        (&with_claim("/spec/volumeName", Value::Null), &local, "PVC is not bound"),
        (
            &with_claim("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            &local,
            "PVC is being deleted",
        ),
        (&only, &[], "failed to fetch PV pv-1 from API server: not found"),
        (
            &with_claim("/metadata/uid", json!("claim-2")),
            &local,
            "is bound to the claim of UID \"claim-1\", and this one's is \"claim-2\"",
        ),
        (&only, &unclaimed, "the claim of UID \"\""),
        (&only, &local, ""),
    ];
    for (claims, volumes, expected) in rows {
        match resolve(&pod(), &lookup(claims, volumes), on_node(Some(&node()))) {
            Ok(claimed) => {
                assert!(expected.is_empty(), "{expected}");
                assert_eq!(claimed.plugin, PersistentVolumePlugin::Local);
            }
            Err(said) => {
                assert!(
                    said.starts_with("MountVolume.SetUp failed for volume \"data\" : "),
                    "{said}"
                );
                assert!(!expected.is_empty() && said.contains(expected), "{said}");
            }
        }
    }
}

#[test]
fn a_pod_that_runs_keeps_a_volume_whose_claim_is_being_deleted() {
    let deleted = with(claim("disk"), "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    let lookup = lookup(std::slice::from_ref(&deleted), &[local()]);
    let context = ClaimContext { node: Some(&node()), pod_runs: true };
    assert!(resolve(&pod(), &lookup, context).is_ok());
    assert!(!is_settled(&object(deleted), &object(local())), "it is read again for the next pod");
    assert!(is_settled(&object(claim("disk")), &object(local())));
}

#[test]
fn the_claim_of_an_ephemeral_volume_is_the_pods_own() {
    let owned = |uid: &str, controller: bool| {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": controller});
        with(claim("web-data"), "/metadata/ownerReferences", json!([owner]))
    };
    let rows = [
        (owned("uid-web", true), true),
        (owned("uid-web", false), false),
        (owned("uid-of-another", true), false),
        (claim("web-data"), false),
    ];
    for (claim, is_own) in rows {
        let found = resolve(&ephemeral_pod(), &lookup(&[claim], &[local()]), on_node(None));
        assert_eq!(found.is_ok(), is_own, "{found:?}");
        if let Err(said) = found {
            let expected = "PVC was not created for pod shop/web (pod is not owner)";
            assert!(said.ends_with(expected), "{said}");
        }
    }
}

#[test]
fn a_volume_on_other_nodes_is_refused_unless_the_labels_are_not_known() {
    let selecting = |zone: &str| {
        let term =
            json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        with(local(), "/spec/nodeAffinity", json!({"required": {"nodeSelectorTerms": [term]}}))
    };
    let node = node();
    let rows = [
        (selecting("a"), Some(&node), true),
        (selecting("b"), Some(&node), false),
        (selecting("b"), None, true),
    ];
    for (volume, node, is_here) in rows {
        let found = resolve(&pod(), &lookup(&[claim("disk")], &[volume]), on_node(node));
        assert_eq!(found.is_ok(), is_here, "{found:?}");
        if let Err(said) = found {
            assert!(
                said.contains("Storage node affinity check failed for volume \"pv-1\""),
                "{said}"
            );
        }
    }
}

#[test]
fn the_type_of_a_volume_says_its_plugin_and_others_are_refused_by_name() {
    let driver = json!({"csi": {"driver": "disks.example.com", "volumeHandle": "h"}});
    let rows = [
        (json!({"local": {"path": "/mnt"}}), Ok("kubernetes.io/local-volume")),
        (json!({"hostPath": {"path": "/srv"}}), Ok("kubernetes.io/host-path")),
        (json!({"nfs": {"path": "/", "server": "s"}}), Ok("kubernetes.io/nfs")),
        (
            driver,
            Err(
                "is of type csi, and this agent mounts local, hostPath and nfs volumes only: CSI drivers are not built in yet",
            ),
        ),
        (
            json!({"fc": {}}),
            Err("is of type fc, and this agent mounts local, hostPath and nfs volumes only"),
        ),
        (json!({}), Err("is of type unknown")),
    ];
    for (source, expected) in rows {
        let lookup = lookup(&[claim("disk")], &[volume(&source)]);
        match (resolve(&pod(), &lookup, on_node(None)), expected) {
            (Ok(claimed), Ok(plugin)) => assert_eq!(claimed.plugin.name(), plugin),
            (Err(said), Err(text)) => assert!(said.contains(text), "{said}"),
            (found, expected) => panic!("{found:?} {expected:?}"),
        }
    }
}

#[test]
fn devices_and_directories_are_not_taken_for_each_other() {
    let by_device =
        || pod_using("volumeDevices", &json!({"persistentVolumeClaim": {"claimName": "disk"}}));
    let block = || with(local(), "/spec/volumeMode", json!("Block"));
    let directory = || with(local(), "/spec/volumeMode", json!("Filesystem"));
    let rows = [
        (pod(), directory(), None),
        (
            pod(),
            block(),
            Some("PVC shop/disk has volumeMode Block, but is specified in volumeMounts"),
        ),
        (
            by_device(),
            directory(),
            Some("has volumeMode Filesystem, but is specified in volumeDevices"),
        ),
        (by_device(), block(), Some("this agent has no block volumes")),
    ];
    for (pod, volume, expected) in rows {
        let found = resolve(&pod, &lookup(&[claim("disk")], &[volume]), on_node(None)).err();
        assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
    }
}

#[test]
fn a_volume_is_found_by_its_own_name_and_read_only_when_the_claim_is() {
    let reading = json!({"persistentVolumeClaim": {"claimName": "disk", "readOnly": true}});
    let paths = PodPaths::new(Path::new("/r"), &PodUid::from("u"));
    let host = volume(&json!({"hostPath": {"path": "/srv"}}));
    let at = "/r/pods/u/volumes/kubernetes.io~local-volume/pv-1";
    let rows = [
        (pod(), local(), at, false, true),
        (pod_using("volumeMounts", &reading), local(), at, true, true),
        (pod(), host, "/srv", false, false),
    ];
    for (pod, volume, path, read_only, relabel) in rows {
        let claimed = resolve(&pod, &lookup(&[claim("disk")], &[volume]), on_node(None)).unwrap();
        let expected = VolumePath { path: PathBuf::from(path), read_only, relabel };
        assert_eq!(claimed.path(&paths), expected);
    }
}

#[test]
fn the_group_of_a_volume_is_a_number_in_its_annotation() {
    let rows = [
        (json!({}), None),
        (json!({"pv.beta.kubernetes.io/gid": "1234"}), Some(1234)),
        (json!({"pv.beta.kubernetes.io/gid": "staff"}), None),
        (json!({"pv.beta.kubernetes.io/gid": "-1"}), None),
        (json!({"pv.beta.kubernetes.io/gid": "4294967296"}), None),
    ];
    for (annotations, expected) in rows {
        let volume = with(local(), "/metadata/annotations", annotations);
        let claimed = resolve(&pod(), &lookup(&[claim("disk")], &[volume]), on_node(None));
        assert_eq!(claimed.unwrap().group(), expected);
    }
}

#[test]
fn a_volume_of_one_pod_is_given_to_the_next_when_the_first_has_released_it() {
    let claimed = |modes: Value| {
        let volume = with(local(), "/spec/accessModes", modes);
        claimed_volumes(&pod(), &lookup(&[claim("disk")], &[volume]), on_node(None)).0
    };
    let (shared, own) = (claimed(json!(["ReadWriteOnce"])), claimed(json!(["ReadWriteOncePod"])));
    let (first, second) = (PodUid::from("1"), PodUid::from("2"));
    let mut volumes = ExclusiveVolumes::default();
    volumes.reserve(&first, &shared).unwrap();
    volumes.reserve(&second, &shared).unwrap();
    for _ in 0..2 {
        volumes.reserve(&first, &own).unwrap();
    }
    let said = volumes.reserve(&second, &own).unwrap_err().to_string();
    let expected = "volume \"data\" uses the ReadWriteOncePod access mode and is already in use by another pod, 1";
    assert_eq!(said, expected);
    volumes.release(&first);
    volumes.reserve(&second, &own).unwrap();
}

#[test]
fn volumes_that_no_container_uses_are_not_asked_for() {
    let mut pod = pod();
    pod.spec.as_mut().unwrap().containers[0].volume_mounts = None;
    assert_eq!(claimed_volumes(&pod, &Lookup::default(), on_node(None)), Default::default());
}
