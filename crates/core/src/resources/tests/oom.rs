//! Who goes first when memory runs out, on a machine of 8 GiB.

use serde_json::json;

use super::*;

fn asking(memory: &str) -> Value {
    json!({"requests": {"memory": memory}})
}

fn sidecar(memory: &str) -> Value {
    json!({"initContainers": [{"name": "s", "restartPolicy": "Always", "resources": asking(memory)}]})
}

#[test]
fn the_class_comes_first_then_what_is_requested() {
    let both = json!({"cpu": "1", "memory": "1Gi"});
    let guaranteed = containers(&[json!({"requests": both, "limits": both})]);
    let cpu = containers(&[json!({"requests": {"cpu": "1"}})]);
    let critical = |class: &str, priority: i32| {
        with(containers(&[json!({})]), &json!({"priorityClassName": class, "priority": priority}))
    };
    let rows = [
        ("guaranteed", guaranteed, "c0", -997),
        ("best effort", containers(&[json!({})]), "c0", 1000),
        ("node critical", critical("system-node-critical", 2_000_001_000), "c0", -997),
        (
            "cluster critical is not enough",
            critical("system-cluster-critical", 2_000_000_000),
            "c0",
            1000,
        ),
        ("a name without the priority", critical("system-node-critical", 1), "c0", 1000),
        ("burstable, an eighth", containers(&[asking("1Gi")]), "c0", 875),
        ("burstable, a quarter", containers(&[asking("2Gi")]), "c0", 750),
        ("burstable, nothing", cpu, "c0", 999),
        ("burstable, next to nothing", containers(&[asking("1")]), "c0", 999),
        ("burstable, everything", containers(&[asking("8Gi")]), "c0", 3),
        ("burstable, more than there is", containers(&[asking("80Gi")]), "c0", 3),
        ("each container its own", containers(&[asking("1Gi"), asking("2Gi")]), "c1", 750),
        (
            "a small sidecar is as the smallest regular container",
            with(containers(&[asking("4Gi"), asking("2Gi")]), &sidecar("1Gi")),
            "s",
            750,
        ),
        (
            "a large sidecar is itself",
            with(containers(&[asking("1Gi")]), &sidecar("2Gi")),
            "s",
            750,
        ),
        (
            "an init container is itself",
            with(
                containers(&[asking("2Gi")]),
                &json!({"initContainers": [{"name": "i", "resources": asking("1Gi")}]}),
            ),
            "i",
            875,
        ),
        (
            "what the pod requests beyond its containers is split among them",
            with(containers(&[asking("1Gi"), json!({})]), &json!({"resources": asking("3Gi")})),
            "c0",
            750,
        ),
        (
            "and counts for sidecars too",
            with(
                with(containers(&[asking("1Gi")]), &sidecar("0")),
                &json!({"resources": asking("3Gi")}),
            ),
            "s",
            750,
        ),
    ];
    for (fact, spec, name, expected) in rows {
        let pod = pod(&spec);
        assert_eq!(oom_score_adj(&pod, &named(&pod, name), 8 * GIB), expected, "{fact}");
    }
}

#[test]
fn no_score_is_asked_for_that_the_kernel_would_refuse() {
    let both = json!({"cpu": "1", "memory": "1Gi"});
    let pod = pod(&containers(&[json!({"requests": both, "limits": both})]));
    for (lowest_oom_score_adj, expected) in [(-1000, -997), (-998, -997), (0, 0), (500, 500)] {
        let node = NodeResources { lowest_oom_score_adj, ..node() };
        let found = container(&pod, &named(&pod, "c0"), &node);
        assert_eq!(found.oom_score_adj, expected, "{lowest_oom_score_adj}");
    }
}

#[test]
fn a_machine_of_unknown_memory_is_no_reason_to_stumble() {
    let pod = pod(&containers(&[asking("1Gi")]));
    assert_eq!(oom_score_adj(&pod, &named(&pod, "c0"), 0), 3);
}
