//! Pods in user namespaces. The world refuses a sandbox whose ids another pod has, and a container whose ids are not those of its sandbox.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::CoreDecisions;
use oarsman_sim::scenario::{CREATED_AT, ScenarioLog, container, delete, pod, run_pod};
use oarsman_sim::{ExternalAction, SimulationPlan, invariants, run};
use oarsman_world::faults::FaultPlan;

/// A pod that wants a user namespace, of the runtime class that has them.
fn in_user_namespace(script: &[&str]) -> Pod {
    let mut pod = pod(vec![], vec![container("a", script)], 30);
    let spec = pod.spec.get_or_insert_default();
    spec.host_users = Some(false);
    spec.runtime_class_name = Some("apart".to_owned());
    pod
}

fn class() -> ExternalAction {
    let (class, handler) = ("apart".to_owned(), "fake".to_owned());
    ExternalAction::CreateRuntimeClass { class, handler }
}

#[test]
fn a_pod_in_a_user_namespace_keeps_its_ids_over_a_kill_of_the_agent() {
    let killed = ExternalAction::WhileAgentDown(Box::new(class()));
    let actions = [(0, class()), (CREATED_AT + 5, killed)];
    let result = run_pod(in_user_namespace(&["sleep:10s", "exit:3"]), &actions).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("sandbox#1"), None, "there is one sandbox");
    let again = log.when("a#1 started").unwrap();
    assert!(again >= CREATED_AT + 10, "in the same sandbox, with the same ids: {again}");
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn many_pods_in_user_namespaces_come_and_go_with_kills_and_never_share_ids() {
    let mut actions = vec![(Duration::ZERO, class())];
    let at = |seconds: u64| Duration::from_secs(seconds);
    for number in 0..12_u64 {
        let mut pod = in_user_namespace(&["forever"]);
        let name = format!("p{number}");
        pod.metadata.uid = Some(format!("uid-{name}"));
        pod.metadata.name = Some(name.clone());
        actions.push((at(1 + 10 * number), ExternalAction::Create(pod)));
        let gone = ExternalAction::Delete { pod: name, grace: Some(1) };
        let gone =
            if number % 3 == 0 { ExternalAction::WhileAgentDown(Box::new(gone)) } else { gone };
        actions.push((at(35 + 10 * number), gone));
    }
    actions.sort_by_key(|(at, _)| *at);
    let plan =
        SimulationPlan { seed: 7, faults: FaultPlan::quiet(), actions, kills: vec![40, 90, 200] };
    let result = run(&plan, Arc::new(CoreDecisions)).unwrap();
    let started = ScenarioLog::of(&result);
    assert_eq!(started.all("a#0 started").count(), 12);
    assert_eq!(invariants::check(&result), []);
    assert!(result.events.iter().all(|it| it.event.reason != "FailedCreatePodSandBox"));
}

#[test]
fn the_ids_of_a_pod_that_is_deleted_are_given_back() {
    let actions = [(0, class()), (CREATED_AT + 5, delete(Some(1)))];
    let result = run_pod(in_user_namespace(&["forever"]), &actions).unwrap();
    assert_eq!(invariants::check(&result), []);
    assert!(result.final_state.on_disk.is_empty());
}
