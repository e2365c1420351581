//! What of the node changes while pods run: the network of the runtime, and the node's addresses.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::CoreDecisions;
use oarsman_sim::mistakes::Mistake;
use oarsman_sim::scenario::{CREATED_AT, container, events_with_reason, pod, run_pod};
use oarsman_sim::{ExternalAction, SimulationPlan, SimulationResult, invariants, run};
use oarsman_world::faults::FaultPlan;
use oarsman_world::trace::TraceEntry;

/// How long the runtime has no network in these tests.
const OUTAGE: u64 = 100;

fn forever() -> Pod {
    pod(vec![], vec![container("a", &["forever"])], 5)
}

/// The pod is created in a node whose runtime has no network for the first hundred seconds.
fn without_network(pod: Pod) -> io::Result<SimulationResult> {
    run(&network_outage(pod), Arc::new(CoreDecisions))
}

fn network_outage(pod: Pod) -> SimulationPlan {
    let actions = vec![
        (Duration::ZERO, ExternalAction::NetworkOutage(Duration::from_secs(OUTAGE))),
        (Duration::from_secs(CREATED_AT), ExternalAction::Create(pod)),
    ];
    SimulationPlan { seed: 1, faults: FaultPlan::quiet(), actions, kills: Vec::new() }
}

/// The seconds of the calls of that name.
fn calls(result: &SimulationResult, name: &str) -> Vec<u64> {
    let named = result
        .records
        .iter()
        .filter(|record| matches!(&record.entry, TraceEntry::Called { call, .. } if *call == name));
    named.map(|record| record.at.as_secs()).collect()
}

#[test]
fn no_sandbox_is_tried_while_the_runtime_has_no_network_and_one_soon_after() {
    let result = without_network(forever()).unwrap();
    let tried = calls(&result, "RunPodSandbox");
    assert_eq!(tried.len(), 1, "{tried:?}");
    assert!((OUTAGE..OUTAGE + 5).contains(&tried[0]), "{tried:?}");
    let events = events_with_reason(&result, "NetworkNotReady");
    let (at, event) = events[0];
    assert!(at <= CREATED_AT + 1, "at {at} s");
    let message = "network is not ready: container runtime network not ready: NetworkReady=false \
        reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";
    assert_eq!(event.message, message);
    assert!(events_with_reason(&result, "FailedCreatePodSandBox").is_empty());
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn sandboxes_that_are_tried_without_a_network_are_noticed() {
    let decisions = Mistake::IgnoresTheNetwork.decisions();
    let result = run(&network_outage(forever()), decisions).unwrap();
    let rules: Vec<_> = invariants::check(&result).iter().map(|violation| violation.rule).collect();
    assert!(rules.contains(&"no sandbox is tried without a network"), "{rules:?}");
}

#[test]
fn a_pod_of_the_nodes_network_does_not_wait_for_the_network_of_pods() {
    let mut pod = forever();
    pod.spec.get_or_insert_default().host_network = Some(true);
    let result = without_network(pod).unwrap();
    assert!(calls(&result, "RunPodSandbox")[0] <= CREATED_AT + 1);
    assert!(events_with_reason(&result, "NetworkNotReady").is_empty());
}

#[test]
fn a_running_pod_restarts_its_containers_while_there_is_no_network() {
    let crashing = pod(vec![], vec![container("a", &["sleep:30s", "exit:1"])], 5);
    let outage = ExternalAction::NetworkOutage(Duration::from_secs(OUTAGE));
    let result = run_pod(crashing, &[(CREATED_AT + 10, outage)]).unwrap();
    assert_eq!(calls(&result, "RunPodSandbox").len(), 1);
    let starts = calls(&result, "StartContainer");
    assert!(starts[1] < CREATED_AT + 10 + OUTAGE, "{starts:?}");
}

#[test]
fn a_change_of_the_nodes_addresses_reaches_every_pod() {
    let change = ExternalAction::ChangeAddresses(vec!["192.0.2.9".parse().unwrap()]);
    let result = run_pod(forever(), &[(CREATED_AT + 100, change)]).unwrap();
    let mut told: Vec<(u64, String)> = Vec::new();
    for published in &result.statuses {
        let ip = published.status.host_ip.clone().unwrap_or_default();
        if told.last().is_none_or(|(_, last)| *last != ip) {
            told.push((published.at.as_secs(), ip));
        }
    }
    let ips: Vec<&str> = told.iter().map(|(_, ip)| ip.as_str()).collect();
    assert_eq!(ips, ["192.0.2.1", "192.0.2.9"]);
    assert!(told[1].0 <= CREATED_AT + 100 + 15, "{told:?}");
}
