//! Which parts of a pod's spec reach the runtime, and the waiting states of those that cannot, by the world's trace.

use k8s_openapi::api::core::v1::{
    ConfigMapKeySelector, Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod,
    SecurityContext, VolumeMount,
};
use oarsman_sim::scenario::{
    CREATED_AT, ScenarioLog, container, events_with_reason, pod, run_pod, waiting_states,
};
use oarsman_sim::{SimulationResult, invariants};

const FOREVER: &[&str] = &["forever"];

fn variable(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None }
}

/// A container with a variable of a ConfigMap that does not exist.
fn without_its_config_map() -> Container {
    let key = ConfigMapKeySelector { name: "none".to_owned(), key: "k".to_owned(), optional: None };
    let source = EnvVarSource { config_map_key_ref: Some(key), ..EnvVarSource::default() };
    let variable = EnvVar { name: "V".to_owned(), value_from: Some(source), ..EnvVar::default() };
    Container { env: Some(vec![variable]), ..container("a", FOREVER) }
}

fn not_as_root() -> Container {
    let context = SecurityContext { run_as_non_root: Some(true), ..SecurityContext::default() };
    Container { security_context: Some(context), ..container("a", FOREVER) }
}

fn with_an_undeclared_volume() -> Container {
    let mount = VolumeMount { name: "none".to_owned(), ..VolumeMount::default() };
    Container { volume_mounts: Some(vec![mount]), ..container("a", FOREVER) }
}

/// The termination message of an ended instance of a container.
fn termination_message(result: &SimulationResult, name: &str) -> Option<String> {
    let last = result.statuses.last()?;
    let status = last.status.container_statuses.iter().flatten().find(|s| s.name == name)?;
    let mut states = [&status.state, &status.last_state].into_iter().flatten();
    states.find_map(|state| state.terminated.as_ref()?.message.clone())
}

fn once(pod: Pod) -> Pod {
    let mut pod = pod;
    pod.spec.get_or_insert_default().restart_policy = Some("Never".to_owned());
    pod
}

#[test]
fn a_container_without_valid_config_has_a_reason_and_blocks_no_other() {
    let rows = [
        (without_its_config_map(), "configmap \"none\" not found"),
        (
            not_as_root(),
            "container has runAsNonRoot and image will run as root (pod: \"p_default(uid-p)\", container: a)",
        ),
        (with_an_undeclared_volume(), "cannot find volume \"none\" to mount into container \"a\""),
    ];
    for (broken, message) in rows {
        let result = run_pod(pod(vec![], vec![broken, container("b", FOREVER)], 30), &[]).unwrap();
        let log = ScenarioLog::of(&result);
        assert_eq!(log.when("CreateContainer sandbox#0 a"), None, "{message}");
        assert_eq!(log.when("b#0 started"), Some(CREATED_AT), "{message}");
        let mut said =
            waiting_states(&result, "a").into_iter().map(|(_, reason, message)| (reason, message));
        let expected = ("CreateContainerConfigError".to_owned(), message.to_owned());
        assert_eq!(said.next_back(), Some(expected));
        let failed = events_with_reason(&result, "Failed");
        assert_eq!(failed[0].1.message, format!("Error: {message}"));
        assert_eq!(failed[0].1.field_path.as_deref(), Some("spec.containers{a}"));
    }
}

#[test]
fn a_sandbox_without_valid_config_is_never_created() {
    let mut pod = pod(vec![], vec![container("a", FOREVER)], 30);
    pod.spec.get_or_insert_default().host_users = Some(false);
    let result = run_pod(pod, &[]).unwrap();
    assert_eq!(ScenarioLog::of(&result).when("RunPodSandbox"), None);
    let failed = events_with_reason(&result, "FailedCreatePodSandBox");
    assert!(failed[0].1.message.starts_with("Failed to create pod sandbox: spec.hostUsers is"));
}

#[test]
fn variables_reach_the_program_and_its_arguments() {
    let env = vec![variable("TENS", "4"), variable("CODE", "$(TENS)2")];
    let program = Container { env: Some(env), ..container("a", &["exit:$(CODE)"]) };
    let result = run_pod(once(pod(vec![], vec![program], 30)), &[]).unwrap();
    assert_eq!(ScenarioLog::of(&result).when("a#0 exited with 42"), Some(CREATED_AT));
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn termination_messages_are_read_from_the_file_that_was_mounted_for_them() {
    let field = ObjectFieldSelector { field_path: "metadata.uid".to_owned(), api_version: None };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    let uid = EnvVar { name: "UID".to_owned(), value_from: Some(source), ..EnvVar::default() };
    let speaker = Container {
        env: Some(vec![uid]),
        termination_message_path: Some("/dev/termination-log".to_owned()),
        ..container("a", &["write:/dev/termination-log=I was $(UID)", "exit:3"])
    };
    let result = run_pod(once(pod(vec![], vec![speaker], 30)), &[]).unwrap();
    assert_eq!(termination_message(&result, "a").as_deref(), Some("I was uid-p"));
}
