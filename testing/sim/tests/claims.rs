//! Pods whose volumes are made by claims: not bound yet, deleted, made again under their names, and needed after a kill of the agent.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod,
    Volume, VolumeMount,
};
use oarsman_sim::scenario::{
    CREATED_AT, ScenarioLog, container, delete, events_with_reason, pod, run_pod,
};
use oarsman_sim::{ExternalAction, SimulationResult, invariants};
use serde_json::{Value, json};

/// A pod that mounts its claim `disk` and runs this script.
fn pod_with_claim(script: &[&str]) -> Pod {
    let (name, mount_path) = ("v".to_owned(), "/v".to_owned());
    let mount = VolumeMount { name, mount_path, ..VolumeMount::default() };
    let main = Container { volume_mounts: Some(vec![mount]), ..container("a", script) };
    let mut pod = pod(vec![], vec![main], 30);
    let claim_name = "disk".to_owned();
    let claim = Some(PersistentVolumeClaimVolumeSource { claim_name, read_only: None });
    let volume =
        Volume { name: "v".to_owned(), persistent_volume_claim: claim, ..Volume::default() };
    pod.spec.get_or_insert_default().volumes = Some(vec![volume]);
    pod
}

fn claim(phase: &str, uid: &str) -> ExternalAction {
    let claim: PersistentVolumeClaim = object(json!({
        "metadata": { "name": "disk", "namespace": "default", "uid": uid },
        "spec": { "volumeName": "pv-1" },
        "status": { "phase": phase },
    }));
    ExternalAction::PutClaim(claim)
}

fn volume() -> ExternalAction {
    let volume: PersistentVolume = object(json!({
        "metadata": { "name": "pv-1", "annotations": { "pv.beta.kubernetes.io/gid": "1234" } },
        "spec": { "claimRef": { "uid": "claim-1" }, "local": { "path": "/mnt/disks/1" } },
    }));
    ExternalAction::PutPersistentVolume(Box::new(volume))
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// What is said of the volume, in order, each sentence once.
fn faults(result: &SimulationResult) -> Vec<String> {
    let mut said: Vec<String> = events_with_reason(result, "FailedMount")
        .into_iter()
        .map(|(_, event)| event.message.clone())
        .collect();
    said.dedup();
    said
}

#[test]
fn a_pod_waits_until_its_claim_is_bound_to_a_volume_and_says_for_what() {
    let actions = [
        (CREATED_AT + 50, claim("Pending", "claim-1")),
        (CREATED_AT + 100, claim("Bound", "claim-1")),
        (CREATED_AT + 150, volume()),
    ];
    let result = run_pod(pod_with_claim(&["forever"]), &actions).unwrap();
    let said = faults(&result);
    let expected = [
        "failed to fetch PVC from API server: not found",
        "PVC is not bound",
        "failed to fetch PV pv-1 from API server: not found",
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(
            said.starts_with(
                "MountVolume.SetUp failed for volume \"v\" : error processing PVC default/disk: "
            ),
            "{said}"
        );
        assert!(said.ends_with(expected), "{said}");
    }
    let began = ScenarioLog::of(&result).when("a#0 started").unwrap();
    assert!((CREATED_AT + 150..CREATED_AT + 170).contains(&began), "{began}");
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn a_claim_that_was_made_again_under_its_name_does_not_get_the_volume_of_the_old_one() {
    let actions = [(0, claim("Bound", "claim-2")), (0, volume())];
    let result = run_pod(pod_with_claim(&["forever"]), &actions).unwrap();
    let said = faults(&result);
    assert!(said[0].contains("\"claim-1\", and this one's is \"claim-2\""), "{said:?}");
    assert_eq!(ScenarioLog::of(&result).when("a#0 started"), None);
}

#[test]
fn a_pod_that_runs_keeps_its_volume_whatever_becomes_of_the_claim() {
    let gone = ExternalAction::DeleteClaim { claim: "disk".to_owned() };
    let actions = [(0, claim("Bound", "claim-1")), (0, volume()), (CREATED_AT + 5, gone)];
    let result = run_pod(pod_with_claim(&["sleep:10s", "exit:3"]), &actions).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("a#1 started"), Some(CREATED_AT + 10), "a restart needs no claim");
    assert_eq!(faults(&result), Vec::<String>::new());
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn without_an_api_server_a_container_starts_again_with_its_volume() {
    let away = ExternalAction::ApiServerOutage(Duration::from_secs(300));
    let actions = [(0, claim("Bound", "claim-1")), (0, volume()), (CREATED_AT + 5, away)];
    let result = run_pod(pod_with_claim(&["sleep:10s", "exit:3"]), &actions).unwrap();
    assert_eq!(ScenarioLog::of(&result).when("a#1 started"), Some(CREATED_AT + 10));
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn a_pod_that_is_deleted_while_the_agent_is_down_gives_its_volume_back() {
    let killed = ExternalAction::WhileAgentDown(Box::new(delete(Some(5))));
    let actions = [(0, claim("Bound", "claim-1")), (0, volume()), (CREATED_AT + 20, killed)];
    let result = run_pod(pod_with_claim(&["forever"]), &actions).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.all("a#").filter(|(_, line)| line.ends_with("started")).count(), 1);
    assert_eq!(invariants::check(&result), []);
}
