//! ConfigMaps that pods refer to: missing, coming later, changing, and asked for while the API server is away.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapKeySelector, ConfigMapVolumeSource, Container, EnvVar, EnvVarSource, Pod,
    Volume, VolumeMount,
};
use oarsman_lives::stage::{MADE, Tale, container, lived, pod, told, waits};
use oarsman_lives::{Act, invariants};

/// The ConfigMap `settings` with that value of `code`.
fn settings(code: &str) -> Act {
    let mut map = ConfigMap {
        data: Some(BTreeMap::from([("code".to_owned(), code.to_owned())])),
        ..ConfigMap::default()
    };
    map.metadata.name = Some("settings".to_owned());
    Act::Configure(map)
}

/// A pod whose container ends with the code that its ConfigMap says.
fn told_by_its_config_map() -> Pod {
    let (name, key) = ("settings".to_owned(), "code".to_owned());
    let key = ConfigMapKeySelector { name, key, optional: None };
    let source = EnvVarSource { config_map_key_ref: Some(key), ..EnvVarSource::default() };
    let code = EnvVar { name: "CODE".to_owned(), value_from: Some(source), ..EnvVar::default() };
    let main = container("a", &["sleep:10s", "exit:$(CODE)"]);
    pod(vec![], vec![Container { env: Some(vec![code]), ..main }], 30)
}

#[test]
fn a_pod_waits_for_its_config_map_and_starts_when_it_comes() {
    let comes = MADE + 100;
    let life = lived(told_by_its_config_map(), &[(comes, settings("3"))]).unwrap();
    let message = "configmap \"settings\" not found".to_owned();
    let (_, reason, why) =
        waits(&life, "a").into_iter().find(|(_, reason, _)| reason.starts_with("Create")).unwrap();
    assert_eq!((reason.as_str(), why), ("CreateContainerConfigError", message.clone()));
    assert_eq!(told(&life, "Failed")[0].1.message, format!("Error: {message}"));
    let tale = Tale::of(&life);
    assert_eq!(
        tale.when("a#0 started"),
        Some(comes),
        "it hears of it, and does not just look again"
    );
    assert_eq!(tale.when("a#0 exited with 3"), Some(comes + 10));
    assert_eq!(invariants::judge(&life), []);
}

#[test]
fn an_edit_restarts_nothing_and_counts_from_the_next_start() {
    let acts = [(0, settings("3")), (MADE + 5, settings("4"))];
    let life = lived(told_by_its_config_map(), &acts).unwrap();
    let tale = Tale::of(&life);
    assert_eq!(tale.when("a#0 exited with 3"), Some(MADE + 10));
    assert_eq!(tale.when("a#1 exited with 4"), Some(MADE + 20));
}

#[test]
fn while_the_api_server_is_away_what_was_known_counts() {
    let away = Act::LeaveAlone(Duration::from_secs(300));
    let acts = [(0, settings("3")), (MADE + 5, away)];
    let life = lived(told_by_its_config_map(), &acts).unwrap();
    let tale = Tale::of(&life);
    assert_eq!(tale.when("a#1 exited with 3"), Some(MADE + 20));
    assert_eq!(invariants::judge(&life), []);
}

/// A pod that mounts its ConfigMap.
fn mounting_its_config_map() -> Pod {
    let mount =
        VolumeMount { name: "v".to_owned(), mount_path: "/v".to_owned(), ..VolumeMount::default() };
    let main = container("a", &["forever"]);
    let mut pod = pod(vec![], vec![Container { volume_mounts: Some(vec![mount]), ..main }], 30);
    let source = ConfigMapVolumeSource { name: "settings".to_owned(), ..Default::default() };
    let volume = Volume { name: "v".to_owned(), config_map: Some(source), ..Volume::default() };
    pod.spec.get_or_insert_default().volumes = Some(vec![volume]);
    pod
}

#[test]
fn a_volume_that_cannot_be_made_is_told_of_and_holds_the_whole_pod() {
    let comes = MADE + 100;
    let life = lived(mounting_its_config_map(), &[(comes, settings("3"))]).unwrap();
    let message = "MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not found";
    let failed = told(&life, "FailedMount");
    assert_eq!((failed[0].0, failed[0].1.message.as_str()), (MADE, message));
    let tale = Tale::of(&life);
    assert_eq!(tale.when("RunPodSandbox"), Some(comes));
    assert_eq!(tale.when("a#0 started"), Some(comes));
    assert_eq!(waits(&life, "a")[0].1, "ContainerCreating");
    assert_eq!(invariants::judge(&life), []);
}
