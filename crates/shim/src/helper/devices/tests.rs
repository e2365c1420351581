//! Rules of specs, and the trees of machines as directories.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn rules_of(devices: &Value) -> Result<Vec<DeviceRule>, HelperError> {
    let spec = json!({"ociVersion": "1.0.2", "linux": {"resources": {"devices": devices}}});
    rules(&serde_json::from_value(spec).unwrap())
}

#[test]
fn a_rule_of_a_spec_is_one_of_the_kernel() {
    let one = |allow, kind, major, minor, access| {
        let access = DeviceAccess::parse(access).unwrap();
        Some(DeviceRule { allow, kind: Some(kind), major, minor, access })
    };
    let (block, character) = (DeviceKind::Block, DeviceKind::Character);
    let everything = |allow| Some(DeviceRule::about_everything(allow));
    let rows = [
        (json!({"allow": false, "access": "rwm"}), everything(false)),
        (json!({"allow": true}), everything(true)),
        (
            json!({"allow": true, "type": "a", "major": 1, "minor": 3, "access": "r"}),
            everything(true),
        ),
        (
            json!({"allow": true, "type": "c", "major": 10, "minor": 229, "access": "rw"}),
            one(true, character, Some(10), Some(229), "rw"),
        ),
        (
            json!({"allow": false, "type": "b", "major": 8, "access": "w"}),
            one(false, block, Some(8), None, "w"),
        ),
        (
            json!({"allow": true, "type": "u", "major": -1, "minor": -1, "access": "m"}),
            one(true, character, None, None, "m"),
        ),
        (json!({"allow": true, "type": "b"}), one(true, block, None, None, "")),
        (json!({"allow": true, "type": "p", "access": "r"}), None),
        (json!({"allow": true, "type": "c", "access": "rx"}), None),
        (json!({"allow": true, "type": "c", "major": 1_i64 << 31, "access": "r"}), None),
    ];
    for (asked, expected) in rows {
        let found = rules_of(&json!([asked]));
        match expected {
            Some(expected) => assert_eq!(found.unwrap().first(), Some(&expected), "{asked}"),
            None => assert!(found.unwrap_err().to_string().contains("no such rule"), "{asked}"),
        }
    }
}

#[test]
fn what_every_container_may_use_comes_last() {
    let all = rules_of(&json!([{"allow": false}])).unwrap();
    assert_eq!(all.first(), Some(&DeviceRule::about_everything(false)));
    assert_eq!((all.len(), all.iter().filter(|rule| rule.allow).count()), (13, 12));
    // Of a disk nothing but a node.
    let disks = all.iter().skip(1).filter(|rule| rule.kind != Some(DeviceKind::Character));
    assert!(disks.map(|rule| rule.access).eq([DeviceAccess::MAKE_NODE]));
    assert_eq!(rules_of(&json!([])).unwrap().len(), 12);
}

fn tree(files: &TempDir, kind: HierarchyKind, members: Option<&str>) -> Hierarchy {
    let name = format!("{kind:?}").replace(|c: char| !c.is_alphanumeric(), "");
    let hierarchy = Hierarchy { kind, root: files.path().join(name) };
    if let Some(members) = members {
        hierarchy.create(Path::new("/pod1/one")).unwrap();
        let file = hierarchy.directory(Path::new("/pod1/one")).join("cgroup.procs");
        fs::write(file, members).unwrap();
    }
    hierarchy
}

#[test]
fn devices_are_controlled_in_the_tree_that_has_the_process() {
    let v1 = |name: &str| HierarchyKind::V1(vec![name.to_owned()]);
    let rows = [
        // One tree; and with one of systemd's beside it.
        (vec![(HierarchyKind::V2, Some("7\n12\n"))], Some(HierarchyKind::V2)),
        (
            vec![(v1("name=systemd"), Some("12\n")), (HierarchyKind::V2, Some("12\n"))],
            Some(HierarchyKind::V2),
        ),
        // Hybrid.
        (vec![(v1("devices"), Some("12\n")), (HierarchyKind::V2, None)], Some(v1("devices"))),
        // One of v1 that is mounted somewhere, and that libcontainer does not use.
        (vec![(v1("devices"), None), (HierarchyKind::V2, Some("12\n"))], Some(HierarchyKind::V2)),
        (
            vec![(v1("devices"), Some("")), (HierarchyKind::V2, Some("12\n"))],
            Some(HierarchyKind::V2),
        ),
        // No control at all.
        (vec![(v1("memory"), Some("12\n")), (HierarchyKind::V2, None)], None),
        (vec![(HierarchyKind::V2, Some("7\n"))], None),
        (vec![], None),
    ];
    for (trees, expected) in rows {
        let files = tempfile::tempdir().unwrap();
        let all: Vec<Hierarchy> =
            trees.into_iter().map(|(kind, members)| tree(&files, kind, members)).collect();
        let found = controlling(&all, Path::new("/pod1/one"), 12).map(|tree| tree.kind.clone());
        assert_eq!(found, expected, "{all:?}");
    }
}
