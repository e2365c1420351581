//! The values of our own groups.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::qos::QosClass;

fn both(cpu: &str, memory: &str) -> Value {
    json!({"cpu": cpu, "memory": memory})
}

fn bounded(cpu: &str, memory: &str) -> Value {
    json!({"requests": both(cpu, memory), "limits": both(cpu, memory)})
}

fn values(shares: u64, quota: Option<u64>, memory_max: Option<u64>) -> CgroupValues {
    CgroupValues {
        shares: Some(shares),
        quota: quota.map(CpuQuota::Micros),
        period: quota.map(|_| 100_000),
        memory_max,
        ..CgroupValues::default()
    }
}

#[test]
fn a_pod_s_group_is_limited_only_where_all_in_it_is() {
    let overhead = json!({"overhead": both("250m", "1Gi")});
    let limits =
        |cpu: &str, memory: &str| json!({"limits": both(cpu, memory), "requests": {"cpu": "100m"}});
    let cpu_only = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}});
    let init = json!({"initContainers": [{"name": "i"}]});
    let whole = json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}});
    let rows = [
        ("best effort", containers(&[json!({})]), values(2, None, None)),
        (
            "best effort, whatever its overhead",
            with(containers(&[json!({})]), &overhead),
            values(2, None, None),
        ),
        ("guaranteed", containers(&[bounded("1", "1Gi")]), values(1024, Some(100_000), Some(GIB))),
        (
            "guaranteed, the sum",
            containers(&[bounded("1", "1Gi"), bounded("500m", "1Gi")]),
            values(1536, Some(150_000), Some(2 * GIB)),
        ),
        (
            "guaranteed, with overhead",
            with(containers(&[bounded("1", "1Gi")]), &overhead),
            values(1280, Some(125_000), Some(2 * GIB)),
        ),
        (
            "burstable, all limited",
            containers(&[limits("1", "1Gi")]),
            values(102, Some(100_000), Some(GIB)),
        ),
        (
            "burstable, one unlimited",
            containers(&[limits("1", "1Gi"), json!({})]),
            values(102, None, None),
        ),
        (
            "burstable, an init container unlimited",
            with(containers(&[limits("1", "1Gi")]), &init),
            values(102, None, None),
        ),
        (
            "burstable, one resource limited",
            containers(&[cpu_only]),
            values(1024, Some(100_000), None),
        ),
        (
            "burstable, only requests",
            containers(&[json!({"requests": both("1", "1Gi")})]),
            values(1024, None, None),
        ),
        (
            "the pod's own limit will do",
            with(containers(&[limits("1", "1Gi"), json!({})]), &whole),
            values(2048, Some(300_000), None),
        ),
        (
            "overhead of what is not limited is no limit",
            with(containers(&[json!({"requests": {"cpu": "1"}})]), &overhead),
            values(1280, None, None),
        ),
    ];
    for (fact, spec, expected) in rows {
        assert_eq!(pod_cgroup(&pod(&spec), &node()), expected, "{fact}");
    }
}

#[test]
fn without_quotas_a_limited_group_is_set_free() {
    let node = NodeResources { cfs_quota: false, ..node() };
    let found = pod_cgroup(&pod(&containers(&[bounded("1", "1Gi")])), &node);
    assert_eq!((found.quota, found.period), (Some(CpuQuota::Unlimited), Some(100_000)));
}

#[test]
fn pod_pids_are_limited_where_the_node_sets_a_limit() {
    for (pod_pids_limit, expected) in [(None, None), (Some(0), None), (Some(100), Some(100))] {
        let node = NodeResources { pod_pids_limit, ..node() };
        assert_eq!(pod_cgroup(&pod(&containers(&[json!({})])), &node).pids_max, expected);
    }
}

#[test]
fn a_pod_has_the_huge_pages_it_requests_and_no_others() {
    let one = json!({"requests": {"hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}});
    let node = NodeResources { hugepage_sizes: vec![2 * MIB, GIB], ..node() };
    let found = pod_cgroup(&pod(&containers(&[one.clone(), one])), &node);
    assert_eq!(found.hugetlb, BTreeMap::from([("2MB".to_owned(), 8 * MIB), ("1GB".to_owned(), 0)]));
}

#[test]
fn the_group_of_burstable_pods_weighs_what_they_request() {
    let asking = |cpu: &str| pod(&containers(&[json!({"requests": {"cpu": cpu}})]));
    let others = [pod(&containers(&[bounded("4", "1Gi")])), pod(&containers(&[json!({})]))];
    let costly = pod(&with(
        containers(&[json!({"requests": {"cpu": "1"}})]),
        &json!({"overhead": {"cpu": "1"}}),
    ));
    let rows = [
        ("no pods", vec![], 2),
        ("other classes", others.to_vec(), 2),
        ("two", vec![asking("1"), asking("500m")], 1536),
        ("two and others", [vec![asking("1"), asking("500m")], others.to_vec()].concat(), 1536),
        ("with overhead", vec![costly], 2048),
        ("very many", vec![asking("1000")], MAX_SHARES),
    ];
    for (fact, pods, expected) in rows {
        let claims: Vec<QosCpuClaim> = pods.iter().map(QosCpuClaim::of).collect();
        assert_eq!(qos_cgroup_shares(QosClass::Burstable, &claims), expected, "{fact}");
        assert_eq!(qos_cgroup_shares(QosClass::BestEffort, &claims), 2, "{fact}");
    }
}

#[test]
fn the_groups_of_classes_leave_huge_pages_to_their_pods() {
    let node = NodeResources { hugepage_sizes: vec![2 * MIB], ..node() };
    let found = qos_cgroup(QosClass::BestEffort, [], &node);
    let hugetlb = BTreeMap::from([("2MB".to_owned(), 4_611_686_018_427_387_904)]);
    assert_eq!(found, CgroupValues { hugetlb, ..values(2, None, None) });
}

#[test]
fn a_volume_in_memory_is_no_larger_than_its_limit_the_pods_and_the_nodes() {
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
    const MIB: u64 = 1 << 20;
    let memory = |amount: &str| json!({"limits": {"memory": amount}});
    let one = containers(&[memory("64Mi")]);
    let some = containers(&[memory("64Mi"), json!({})]);
    let all = containers(&[memory("64Mi"), memory("32Mi")]);
    let none = containers(&[json!({})]);
    let whole = with(some.clone(), &json!({"resources": {"limits": {"memory": "200Mi"}}}));
    let node = Some(GIB);
    let rows = [
        ("the node's", &none, None, node, Some(GIB)),
        ("nothing is known", &none, None, None, None),
        ("its own", &none, Some("1Mi"), node, Some(MIB)),
        ("its own is larger than the node's", &none, Some("2Gi"), node, Some(GIB)),
        ("none of its own", &none, Some("0"), node, Some(GIB)),
        ("the only container's", &one, None, node, Some(64 * MIB)),
        ("a sidecar's limit is not the pod's", &some, None, node, Some(GIB)),
        ("the sum of all containers'", &all, None, node, Some(96 * MIB)),
        ("the pod's own", &whole, None, node, Some(200 * MIB)),
        ("its own below the pod's", &whole, Some("1Mi"), node, Some(MIB)),
    ];
    for (what, spec, own, node, expected) in rows {
        let own = own.map(|amount: &str| WireQuantity(amount.to_owned()));
        assert_eq!(memory_volume_size(&pod(spec), own.as_ref(), node), expected, "{what}");
    }
}
