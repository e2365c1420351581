//! Which pods make room for a critical one.

use super::*;
use crate::admission::predicates::InsufficientResource;
use crate::admission::preemption;

fn missing(resource: &str, quantity: i64) -> InsufficientResource {
    let resource = resource.to_owned();
    InsufficientResource { resource, requested: quantity, used: 0, capacity: 0 }
}

/// Limits as well as requests of both resources: Guaranteed.
fn guaranteed(uid: &str, cpu: &str, memory: &str) -> Pod {
    let mut pod = requesting(pod(uid, 1), &[("cpu", cpu), ("memory", memory)]);
    let resources = pod.spec.as_mut().unwrap().containers[0].resources.as_mut().unwrap();
    resources.limits.clone_from(&resources.requests);
    pod
}

fn burstable(uid: &str, cpu: &str, memory: &str) -> Pod {
    requesting(pod(uid, 1), &[("cpu", cpu), ("memory", memory)])
}

fn chosen(pods: &[Pod], missing: &[InsufficientResource]) -> Vec<String> {
    let pods: Vec<&Pod> = pods.iter().collect();
    match preemption::victims(&critical(pod("new", 9)), &pods, missing) {
        Ok(victims) => victims.iter().map(|pod| pod.uid().to_string()).collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn the_lowest_class_that_has_enough_goes_and_of_it_the_pods_that_fit_best() {
    let pods = [
        requesting(pod("best-effort", 1), &[]),
        burstable("small", "100m", "100"),
        burstable("fits", "500m", "100"),
        burstable("large", "2", "100"),
        guaranteed("guaranteed", "500m", "100"),
    ];
    let rows: [(&[InsufficientResource], &[&str]); 6] = [
        (&[missing("cpu", 500)], &["fits"]),
        (&[missing("cpu", 100)], &["small"]),
        (&[missing("cpu", 600)], &["large"]),
        (&[missing("cpu", 2600)], &["small", "fits", "large"]),
        (&[missing("cpu", 2700)], &["large", "fits", "guaranteed"]),
        (&[missing("pods", 1)], &["best-effort"]),
    ];
    for (missing, expected) in rows {
        let mut victims = chosen(&pods, missing);
        let mut expected: Vec<String> = expected.iter().map(|&name| name.to_owned()).collect();
        victims.sort();
        expected.sort();
        assert_eq!(victims, expected, "{missing:?}");
    }
}

#[test]
fn a_pod_that_the_others_suffice_without_is_spared() {
    let pods = [burstable("a", "6", "6"), burstable("b", "10", "3"), burstable("c", "3", "10")];
    let needed = [missing("cpu", 10_000), missing("memory", 10)];
    assert_eq!(chosen(&pods, &needed), ["c", "b"], "the first choice was a");
}

#[test]
fn only_pods_that_are_not_critical_or_of_lower_priority_are_preempted() {
    let mut other = critical(burstable("critical", "1", "1"));
    let needed = [missing("cpu", 1000)];
    let none = "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]";
    assert_eq!(chosen(&[other.clone()], &needed), [none]);
    other.spec.as_mut().unwrap().priority = Some(CRITICAL_PRIORITY - 1);
    assert_eq!(chosen(&[other], &needed), ["critical"]);
}

#[test]
fn a_victim_fails_with_its_own_grace_and_the_reason_preempting() {
    let order = victim_kill();
    let failure = order.failure.unwrap();
    let message = "Preempted in order to admit critical pod";
    assert_eq!(
        (order.grace, failure.reason.as_str(), failure.message.as_str()),
        (None, "Preempting", message)
    );
    assert_eq!(victim_event(), PodEvent::warning("Preempting", message));
}
