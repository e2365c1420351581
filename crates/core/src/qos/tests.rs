//! Facts about classes: one row, one pod.

use serde_json::{Value, json};

use super::*;

fn pod(spec: &Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
}

fn both(cpu: &str, memory: &str) -> Value {
    json!({"cpu": cpu, "memory": memory})
}

fn guaranteed() -> Value {
    json!({"requests": both("1", "1Gi"), "limits": both("1", "1Gi")})
}

fn containers(resources: &[Value]) -> Value {
    resources.iter().map(|r| json!({"name": "c", "resources": r})).collect()
}

#[test]
fn a_class_follows_from_the_cpu_and_memory_of_all_containers() {
    use QosClass::{BestEffort, Burstable, Guaranteed};
    let rows = [
        ("nothing asked", vec![json!({})], BestEffort),
        (
            "zero is nothing",
            vec![json!({"requests": both("0", "0"), "limits": both("0", "0")})],
            BestEffort,
        ),
        (
            "other resources do not count",
            vec![json!({"limits": {"ephemeral-storage": "1Gi"}})],
            BestEffort,
        ),
        ("bounded and promised", vec![guaranteed()], Guaranteed),
        (
            "spelled differently",
            vec![json!({"requests": both("1000m", "1024Mi"), "limits": both("1", "1Gi")})],
            Guaranteed,
        ),
        ("all bounded", vec![guaranteed(), guaranteed()], Guaranteed),
        ("one unbounded", vec![guaranteed(), json!({})], Burstable),
        (
            "request below limit",
            vec![json!({"requests": both("1", "1Gi"), "limits": both("2", "1Gi")})],
            Burstable,
        ),
        ("only a request", vec![json!({"requests": {"cpu": "1m"}})], Burstable),
        (
            "only one limit",
            vec![json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}})],
            Burstable,
        ),
        (
            "a zero limit bounds nothing",
            vec![json!({"requests": both("1", "0"), "limits": both("1", "0")})],
            Burstable,
        ),
        ("a limit without a request", vec![json!({"limits": both("1", "1Gi")})], Burstable),
    ];
    for (case, resources, expected) in rows {
        let pod = pod(&json!({"containers": containers(&resources)}));
        assert_eq!(class(&pod), expected, "{case}");
    }
}

#[test]
fn sums_are_compared_not_containers_one_by_one() {
    let first = json!({"requests": both("1", "1Gi"), "limits": both("2", "1Gi")});
    let second = json!({"requests": both("2", "1Gi"), "limits": both("1", "1Gi")});
    let pod = pod(&json!({"containers": containers(&[first, second])}));
    assert_eq!(class(&pod), QosClass::Guaranteed);
}

#[test]
fn init_containers_count_and_ephemeral_ones_do_not() {
    let rows =
        [("initContainers", QosClass::Burstable), ("ephemeralContainers", QosClass::Guaranteed)];
    for (list, expected) in rows {
        let mut spec = json!({"containers": containers(&[guaranteed()])});
        spec[list] = containers(&[json!({})]);
        assert_eq!(class(&pod(&spec)), expected, "{list}");
    }
}

#[test]
fn resources_of_the_pod_replace_those_of_its_containers() {
    let rows = [
        (guaranteed(), QosClass::Guaranteed),
        (json!({"requests": both("1", "1Gi")}), QosClass::Burstable),
        (json!({"limits": {"hugepages-2Mi": "2Mi"}}), QosClass::BestEffort),
    ];
    for (resources, expected) in rows {
        let spec = json!({"resources": resources, "containers": containers(&[json!({"requests": {"cpu": "1"}})])});
        assert_eq!(class(&pod(&spec)), expected, "{resources}");
    }
}

#[test]
fn the_class_in_the_status_wins_when_it_is_one() {
    let mut pod = pod(&json!({"containers": containers(&[guaranteed()])}));
    for (recorded, expected) in
        [("BestEffort", QosClass::BestEffort), ("Platinum", QosClass::Guaranteed)]
    {
        pod.status.get_or_insert_default().qos_class = Some(recorded.to_owned());
        assert_eq!(class(&pod), expected);
    }
}
