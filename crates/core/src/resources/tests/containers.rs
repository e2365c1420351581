//! What a runtime is told of one container.

use std::collections::BTreeMap;

use oarsman_cri_types::v1::LinuxContainerResources;
use serde_json::{Value, json};

use super::*;

fn first(spec: &Value, node: &NodeResources) -> LinuxContainerResources {
    let pod = pod(spec);
    container(&pod, &named(&pod, "c0"), node)
}

fn alone(resources: &Value) -> Value {
    containers(std::slice::from_ref(resources))
}

fn unified(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|&(file, text)| (file.to_owned(), text.to_owned())).collect()
}

#[test]
fn cpu_and_memory_come_from_the_container_and_limits_else_from_the_pod() {
    let whole =
        json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3", "memory": "3Gi"}}});
    let own = json!({"requests": {"cpu": "250m"}, "limits": {"cpu": "1", "memory": "1Gi"}});
    let gib = i64::try_from(GIB).unwrap();
    let rows = [
        ("nothing asked", alone(&json!({})), (2, 0, 0)),
        ("request and limit", alone(&own), (256, 100_000, gib)),
        (
            "a limit alone is a request",
            containers(&[json!({"limits": {"cpu": "1"}})]),
            (1024, 100_000, 0),
        ),
        (
            "a request of nothing stays one",
            containers(&[json!({"requests": {"cpu": "0"}, "limits": {"cpu": "1"}})]),
            (2, 100_000, 0),
        ),
        ("no limit", containers(&[json!({"requests": {"cpu": "1"}})]), (1024, 0, 0)),
        ("a tiny limit", containers(&[json!({"limits": {"cpu": "1m"}})]), (2, 1000, 0)),
        ("limits of the pod", with(alone(&json!({})), &whole), (3072, 300_000, 3 * gib)),
        (
            "limits of the pod, a request of its own",
            with(containers(&[json!({"requests": {"cpu": "1"}})]), &whole),
            (1024, 300_000, 3 * gib),
        ),
        ("limits of its own before the pod's", with(alone(&own), &whole), (256, 100_000, gib)),
    ];
    for (fact, spec, expected) in rows {
        let found = first(&spec, &node());
        let numbers = (found.cpu_shares, found.cpu_quota, found.memory_limit_in_bytes);
        assert_eq!(numbers, expected, "{fact}");
        assert_eq!(found.cpu_period, 100_000, "{fact}");
    }
}

#[test]
fn quotas_follow_the_node_s_settings() {
    let spec = containers(&[json!({"limits": {"cpu": "500m"}})]);
    let short = NodeResources { cfs_period: Duration::from_millis(10), ..node() };
    let off = NodeResources { cfs_quota: false, ..node() };
    for (fact, node, expected) in [
        ("default", node(), (50_000, 100_000)),
        ("short", short, (5000, 10_000)),
        ("off", off, (0, 0)),
    ] {
        let found = first(&spec, &node);
        assert_eq!((found.cpu_quota, found.cpu_period), expected, "{fact}");
        assert_eq!(found.cpu_shares, 512, "{fact}");
    }
}

#[test]
fn every_size_of_huge_pages_gets_a_limit() {
    let asked = json!({"limits": {"hugepages-2Mi": "4Mi"}});
    let whole = json!({"resources": {"limits": {"hugepages-1Gi": "2Gi", "hugepages-2Mi": "8Mi"}}});
    let both = vec![2 * MIB, GIB];
    let rows = [
        ("none there", vec![], alone(&asked), vec![]),
        ("none asked", both.clone(), alone(&json!({})), vec![("1GB", 0), ("2MB", 0)]),
        ("one asked", both.clone(), alone(&asked), vec![("1GB", 0), ("2MB", 4 * MIB)]),
        ("asked, not there", vec![GIB], alone(&asked), vec![("1GB", 0)]),
        (
            "of the pod where the container has none",
            both,
            with(alone(&asked), &whole),
            vec![("1GB", 2 * GIB), ("2MB", 4 * MIB)],
        ),
    ];
    for (fact, hugepage_sizes, spec, expected) in rows {
        let found = first(&spec, &NodeResources { hugepage_sizes, ..node() });
        let limits: Vec<_> =
            found.hugepage_limits.iter().map(|l| (l.page_size.as_str(), l.limit)).collect();
        assert_eq!(limits, expected, "{fact}");
    }
}

#[test]
fn an_oom_kill_ends_the_whole_container_on_v2_by_default() {
    use CgroupVersion::{V1, V2};
    let group = unified(&[("memory.oom.group", "1")]);
    let rows = [
        (V2, false, group),
        (V2, true, unified(&[])),
        (V1, false, unified(&[])),
        (V1, true, unified(&[])),
    ];
    for (cgroups, single_process_oom_kill, expected) in rows {
        let swap = Swap::Unlimitable;
        let node = NodeResources { cgroups, single_process_oom_kill, swap, ..node() };
        assert_eq!(first(&alone(&json!({})), &node).unified, expected, "{cgroups:?}");
    }
}

#[test]
fn on_v2_only_burstable_containers_with_room_above_their_request_swap() {
    let memory = |request: &str, limit: &str| json!({"requests": {"memory": request}, "limits": {"memory": limit}});
    let request = json!({"requests": {"memory": "1Gi"}});
    let with_rate_limit = Swap::Limited { capacity: 4 * GIB };
    let half = (GIB / 2).to_string();
    let rows = [
        ("room above", with_rate_limit, containers(&[memory("1Gi", "2Gi")]), Some(half.as_str())),
        ("no limit", with_rate_limit, alone(&request), Some(&half)),
        ("no room", with_rate_limit, containers(&[memory("1Gi", "1Gi")]), Some("0")),
        (
            "no request",
            with_rate_limit,
            containers(&[json!({"requests": {"cpu": "1"}})]),
            Some("0"),
        ),
        ("best effort", with_rate_limit, alone(&json!({})), Some("0")),
        (
            "critical",
            with_rate_limit,
            with(alone(&request), &json!({"priority": 2_000_000_000})),
            Some("0"),
        ),
        ("forbidden", Swap::Forbidden, alone(&request), Some("0")),
        ("not in our hands", Swap::Unlimitable, alone(&request), None),
    ];
    for (fact, swap, spec, expected) in rows {
        let found = first(&spec, &NodeResources { swap, ..node() });
        assert_eq!(found.unified.get("memory.swap.max").map(String::as_str), expected, "{fact}");
        assert_eq!(found.memory_swap_limit_in_bytes, 0, "{fact}");
    }
}

#[test]
fn on_v1_memory_and_swap_together_are_limited_as_memory_is() {
    let spec = containers(&[json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}})]);
    let limit = i64::try_from(2 * GIB).unwrap();
    let rows = [
        (Swap::Forbidden, limit),
        (Swap::Limited { capacity: GIB }, limit),
        (Swap::Unlimitable, 0),
    ];
    for (swap, expected) in rows {
        let node = NodeResources { cgroups: CgroupVersion::V1, swap, ..node() };
        let found = first(&spec, &node);
        assert_eq!(found.memory_swap_limit_in_bytes, expected, "{swap:?}");
        assert!(found.unified.is_empty(), "{swap:?}");
    }
}
