//! Objects that pods refer to: ConfigMaps, Secrets, RuntimeClasses and tokens; missing, created later, changed, and needed while the API server
//! is away.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapKeySelector, ConfigMapVolumeSource, Container, EnvVar, EnvVarSource,
    LocalObjectReference, Pod, ProjectedVolumeSource, Secret, ServiceAccountTokenProjection,
    Volume, VolumeMount, VolumeProjection,
};
use oarsman_sim::scenario::{
    CREATED_AT, PRIVATE, ScenarioLog, container, events_with_reason, pod, run_pod, waiting_states,
};
use oarsman_sim::{ExternalAction, SimulationResult, invariants};
use oarsman_world::disk::DiskChange;
use oarsman_world::trace::TraceEntry;

/// The ConfigMap `settings` with that value of `code`.
fn settings(code: &str) -> ExternalAction {
    let mut map = ConfigMap {
        data: Some(BTreeMap::from([("code".to_owned(), code.to_owned())])),
        ..ConfigMap::default()
    };
    map.metadata.name = Some("settings".to_owned());
    ExternalAction::PutConfigMap(map)
}

/// A pod whose container exits with the code in its ConfigMap.
fn pod_that_exits_by_its_config_map() -> Pod {
    let (name, key) = ("settings".to_owned(), "code".to_owned());
    let key = ConfigMapKeySelector { name, key, optional: None };
    let source = EnvVarSource { config_map_key_ref: Some(key), ..EnvVarSource::default() };
    let code = EnvVar { name: "CODE".to_owned(), value_from: Some(source), ..EnvVar::default() };
    let main = container("a", &["sleep:10s", "exit:$(CODE)"]);
    pod(vec![], vec![Container { env: Some(vec![code]), ..main }], 30)
}

#[test]
fn a_pod_waits_for_its_config_map_and_starts_when_it_comes() {
    let comes = CREATED_AT + 100;
    let result = run_pod(pod_that_exits_by_its_config_map(), &[(comes, settings("3"))]).unwrap();
    let message = "configmap \"settings\" not found".to_owned();
    let (_, reason, why) = waiting_states(&result, "a")
        .into_iter()
        .find(|(_, reason, _)| reason.starts_with("Create"))
        .unwrap();
    assert_eq!((reason.as_str(), why), ("CreateContainerConfigError", message.clone()));
    assert_eq!(events_with_reason(&result, "Failed")[0].1.message, format!("Error: {message}"));
    let log = ScenarioLog::of(&result);
    assert_eq!(
        log.when("a#0 started"),
        Some(comes),
        "it hears of it, and does not just look again"
    );
    assert_eq!(log.when("a#0 exited with 3"), Some(comes + 10));
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn an_edit_restarts_nothing_and_counts_from_the_next_start() {
    let actions = [(0, settings("3")), (CREATED_AT + 5, settings("4"))];
    let result = run_pod(pod_that_exits_by_its_config_map(), &actions).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("a#0 exited with 3"), Some(CREATED_AT + 10));
    assert_eq!(log.when("a#1 exited with 4"), Some(CREATED_AT + 20));
}

#[test]
fn while_the_api_server_is_away_cached_objects_are_used() {
    let away = ExternalAction::ApiServerOutage(Duration::from_secs(300));
    let actions = [(0, settings("3")), (CREATED_AT + 5, away)];
    let result = run_pod(pod_that_exits_by_its_config_map(), &actions).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("a#1 exited with 3"), Some(CREATED_AT + 20));
    assert_eq!(invariants::check(&result), []);
}

/// A pod that mounts its ConfigMap.
fn mounting_its_config_map() -> Pod {
    let source = ConfigMapVolumeSource { name: "settings".to_owned(), ..Default::default() };
    mounting(Volume { name: "v".to_owned(), config_map: Some(source), ..Volume::default() })
}

/// A pod that mounts the volume `v`.
fn mounting(volume: Volume) -> Pod {
    let mount =
        VolumeMount { name: "v".to_owned(), mount_path: "/v".to_owned(), ..VolumeMount::default() };
    let main = container("a", &["forever"]);
    let mut pod = pod(vec![], vec![Container { volume_mounts: Some(vec![mount]), ..main }], 30);
    pod.spec.get_or_insert_default().volumes = Some(vec![volume]);
    pod
}

#[test]
fn a_volume_that_cannot_be_made_gives_an_event_and_holds_the_whole_pod() {
    let comes = CREATED_AT + 100;
    let result = run_pod(mounting_its_config_map(), &[(comes, settings("3"))]).unwrap();
    let message = "MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not found";
    let failed = events_with_reason(&result, "FailedMount");
    assert_eq!((failed[0].0, failed[0].1.message.as_str()), (CREATED_AT, message));
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("RunPodSandbox"), Some(comes));
    assert_eq!(log.when("a#0 started"), Some(comes));
    assert_eq!(waiting_states(&result, "a")[0].1, "ContainerCreating");
    assert_eq!(invariants::check(&result), []);
}

/// A pod that mounts a token with a lifetime of ten minutes.
fn with_a_token() -> Pod {
    let (path, expiration_seconds) = ("token".to_owned(), Some(600));
    let token = ServiceAccountTokenProjection { path, expiration_seconds, audience: None };
    let source =
        VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() };
    let projected = ProjectedVolumeSource { sources: Some(vec![source]), default_mode: None };
    mounting(Volume { name: "v".to_owned(), projected: Some(projected), ..Volume::default() })
}

/// When the files of the pod's volumes changed.
fn replaced(result: &SimulationResult) -> Vec<u64> {
    let of_files = result.records.iter().filter(|record| {
        matches!(record.entry, TraceEntry::Disk { change: DiskChange::FilesReplaced, .. })
    });
    of_files.map(|record| record.at.as_secs()).collect()
}

#[test]
fn a_token_is_replaced_in_its_volume_before_it_expires_and_nothing_restarts() {
    let result = run_pod(with_a_token(), &[(CREATED_AT + 1000, settings("3"))]).unwrap();
    let renewed = replaced(&result);
    assert_eq!(renewed[..3], [CREATED_AT, CREATED_AT + 480, CREATED_AT + 960]);
    assert_eq!(ScenarioLog::of(&result).all("a#0 started").count(), 1);
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn a_token_that_is_due_while_the_server_is_away_is_replaced_when_it_is_back() {
    let away = ExternalAction::ApiServerOutage(Duration::from_secs(300));
    let actions = [(CREATED_AT + 400, away), (CREATED_AT + 1000, settings("3"))];
    let result = run_pod(with_a_token(), &actions).unwrap();
    let renewed = replaced(&result);
    assert_eq!(renewed[0], CREATED_AT);
    assert!((CREATED_AT + 700..CREATED_AT + 710).contains(&renewed[1]), "{renewed:?}");
    assert_eq!(ScenarioLog::of(&result).all("a#0 started").count(), 1);
}

/// A pod whose image is private, and that names the Secret `login` for it.
fn with_a_private_image() -> Pod {
    let main = Container { image: Some(PRIVATE.to_owned()), ..container("a", &["forever"]) };
    let mut pod = pod(vec![], vec![main], 30);
    let login = LocalObjectReference { name: "login".to_owned() };
    pod.spec.get_or_insert_default().image_pull_secrets = Some(vec![login]);
    pod
}

/// The Secret `login` with the credentials of that image.
fn login() -> ExternalAction {
    let text = r#"{"auths": {"reg.world": {"username": "rower", "password": "oar"}}}"#;
    let mut secret = Secret {
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        string_data: Some(BTreeMap::from([(".dockerconfigjson".to_owned(), text.to_owned())])),
        ..Secret::default()
    };
    secret.metadata.name = Some("login".to_owned());
    ExternalAction::PutSecret(secret)
}

#[test]
fn an_image_is_pulled_with_the_secret_that_the_pod_names() {
    let result = run_pod(with_a_private_image(), &[(0, login())]).unwrap();
    assert_eq!(ScenarioLog::of(&result).when("a#0 started"), Some(CREATED_AT));
    assert_eq!(events_with_reason(&result, "FailedToRetrieveImagePullSecret"), []);
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn a_missing_secret_gives_an_event_and_is_used_when_it_exists() {
    let comes = CREATED_AT + 100;
    let result = run_pod(with_a_private_image(), &[(comes, login())]).unwrap();
    let missing = events_with_reason(&result, "FailedToRetrieveImagePullSecret");
    assert_eq!(missing[0].0, CREATED_AT);
    assert!(missing[0].1.message.contains("(login)"), "{}", missing[0].1.message);
    assert!(waiting_states(&result, "a").iter().any(|(_, reason, _)| reason == "ErrImagePull"));
    let started = ScenarioLog::of(&result).when("a#0 started").unwrap();
    assert!(started >= comes, "{started}");
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn a_pod_waits_for_its_runtime_class_and_is_run_by_its_handler() {
    let mut pod = pod(vec![], vec![container("a", &["forever"])], 30);
    pod.spec.get_or_insert_default().runtime_class_name = Some("kata".to_owned());
    // The runtime does not have the first handler.
    let (made, comes) = (CREATED_AT + 50, CREATED_AT + 100);
    let class = |handler: &str| {
        let (class, handler) = ("kata".to_owned(), handler.to_owned());
        ExternalAction::CreateRuntimeClass { class, handler }
    };
    let result = run_pod(pod, &[(made, class("kata-qemu")), (comes, class("fake"))]).unwrap();
    let failed = events_with_reason(&result, "FailedCreatePodSandBox");
    let said = |at: u64, words: &str| {
        failed.iter().any(|(when, event)| *when == at && event.message.contains(words))
    };
    assert!(said(CREATED_AT, "no RuntimeClass \"kata\" is known"), "{failed:?}");
    assert!(said(made, "no runtime for \"kata-qemu\" is configured"), "{failed:?}");
    let phases = result.statuses.iter().filter(|published| published.at.as_secs() < comes);
    assert!(phases.into_iter().all(|told| told.status.phase.as_deref() == Some("Pending")));
    assert_eq!(ScenarioLog::of(&result).when("a#0 started"), Some(comes));
    assert_eq!(invariants::check(&result), []);
}
