//! What a runtime is told of a pod as a whole.

use oarsman_cri_types::v1::LinuxContainerResources;
use serde_json::json;

use super::*;

fn numbers(of: &LinuxContainerResources) -> (i64, i64, i64, i64) {
    (of.cpu_shares, of.cpu_quota, of.cpu_period, of.memory_limit_in_bytes)
}

#[test]
fn a_sandbox_carries_the_sum_of_containers_and_the_overhead_apart() {
    let gib = i64::try_from(GIB).unwrap();
    let one = json!({"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "1Gi"}});
    let two = containers(&[one.clone(), one]);
    let overhead = json!({"overhead": {"cpu": "250m", "memory": "1Gi"}});
    let whole =
        json!({"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4", "memory": "4Gi"}}});
    let sum = (1024, 200_000, 100_000, 2 * gib);
    let none = (0, 0, 0, 0);
    let rows = [
        ("nothing asked", containers(&[json!({})]), (2, 0, 100_000, 0), none),
        ("the sum", two.clone(), sum, none),
        ("overhead apart", with(two.clone(), &overhead), sum, (256, 25_000, 100_000, gib)),
        ("the pod's own", with(two, &whole), (3072, 400_000, 100_000, 4 * gib), none),
    ];
    for (fact, spec, resources, overhead) in rows {
        let found = sandbox(&pod(&spec), &node());
        assert_eq!(numbers(&found.resources), resources, "{fact}");
        assert_eq!(numbers(&found.overhead), overhead, "{fact}");
    }
}
