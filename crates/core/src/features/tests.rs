//! Every gate with a field: the field is dropped where the gate is off, and nothing else is changed.

use k8s_openapi::api::core::v1::{EnvVarSource, FileKeySelector};
use serde_json::{Value, json};

use super::*;

const ALL_ON: fn(&str) -> bool = |_| true;

fn pod(spec: &Value) -> Arc<Pod> {
    let pod = json!({ "metadata": { "name": "a" }, "spec": spec });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn rule(action: &str) -> Value {
    json!({ "action": action, "exitCodes": { "operator": "In", "values": [3] } })
}

#[test]
fn fields_are_kept_where_their_gates_are_on_and_dropped_where_they_are_off() {
    let rows = [
        (
            "ContainerRestartRules",
            json!({ "containers": [{ "name": "c", "restartPolicy": "Never", "restartPolicyRules": [rule("Restart")] }],
                "initContainers": [{ "name": "i", "restartPolicy": "Always", "restartPolicyRules": [rule("Restart")] }] }),
            json!({ "containers": [{ "name": "c" }],
                "initContainers": [{ "name": "i", "restartPolicy": "Always" }] }),
        ),
        (
            "RestartAllContainersOnContainerExits",
            json!({ "containers": [{ "name": "c", "restartPolicy": "Never",
                "restartPolicyRules": [rule("RestartAllContainers"), rule("Restart")] }] }),
            json!({ "containers": [{ "name": "c", "restartPolicy": "Never",
                "restartPolicyRules": [rule(""), rule("Restart")] }] }),
        ),
        (
            "ContainerStopSignals",
            json!({ "containers": [
                { "name": "c", "lifecycle": { "stopSignal": "SIGUSR1" } },
                { "name": "d", "lifecycle": { "stopSignal": "SIGUSR1", "preStop": { "sleep": { "seconds": 1 } } } }] }),
            json!({ "containers": [{ "name": "c" },
                { "name": "d", "lifecycle": { "preStop": { "sleep": { "seconds": 1 } } } }] }),
        ),
        (
            "HostnameOverride",
            json!({ "containers": [], "hostname": "h", "hostnameOverride": "o" }),
            json!({ "containers": [], "hostname": "h" }),
        ),
        (
            "PodLevelResources",
            json!({ "containers": [], "resources": { "limits": { "cpu": "1" } } }),
            json!({ "containers": [] }),
        ),
    ];
    for (gate, with, without) in rows {
        let on = FeatureGates::of(ALL_ON);
        let off = FeatureGates::of(|name| name != gate);
        assert_ne!(on, off, "{gate}");
        let pod_with = pod(&with);
        assert!(Arc::ptr_eq(&on.without_disabled_fields(Arc::clone(&pod_with)), &pod_with));
        assert_eq!(off.without_disabled_fields(pod_with), pod(&without), "{gate}");
        let unused = pod(&json!({ "containers": [{ "name": "c" }] }));
        assert!(Arc::ptr_eq(&off.without_disabled_fields(Arc::clone(&unused)), &unused), "{gate}");
    }
}

#[test]
fn a_variable_from_a_file_is_empty_where_the_gate_is_off() {
    let file = FileKeySelector { key: "K".to_owned(), path: "p".to_owned(), ..Default::default() };
    let source = EnvVarSource { file_key_ref: Some(file), ..EnvVarSource::default() };
    let variable = |value_from| EnvVar { name: "V".to_owned(), value: None, value_from };
    let mut with = Pod::clone(&pod(&json!({ "containers": [{ "name": "c" }] })));
    with.spec.as_mut().unwrap().containers[0].env = Some(vec![variable(Some(source))]);
    let off = FeatureGates::of(|name| name != "EnvFiles");
    let without = off.without_disabled_fields(Arc::new(with));
    assert_eq!(without.spec.as_ref().unwrap().containers[0].env, Some(vec![variable(None)]));
}

#[test]
fn gates_are_by_default_as_in_kubernetes() {
    let gates = FeatureGates::default();
    assert!(gates.restart_all_containers && gates.pod_level_resources && gates.env_files);
    assert!(!gates.container_stop_signals);
}
