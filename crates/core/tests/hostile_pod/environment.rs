//! Row C1: variables that grow when they are expanded.

use std::sync::Arc;

use oarsman_core::cri_spec::{ConfigError, Lookup};
use serde_json::{Value, json};

use super::{container_config, object, pod};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// What is wrong with a container that has these fields.
fn error(fields: Value, lookup: &Lookup) -> String {
    made(fields, lookup).unwrap_err().to_string()
}

fn made(mut fields: Value, lookup: &Lookup) -> Result<(), ConfigError> {
    fields["name"] = json!("app");
    let spec = json!({ "enableServiceLinks": false, "containers": [fields] });
    container_config(&pod(&spec), lookup).map(drop)
}

fn variable(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

/// A config map `big` with one value of so many bytes under `key`.
fn with_map(bytes: usize) -> Lookup {
    let map = json!({ "data": { "key": "x".repeat(bytes) } });
    let mut lookup = Lookup::default();
    lookup.config_maps.insert(object("big"), Arc::new(serde_json::from_value(map).unwrap()));
    lookup
}

#[test]
fn a_value_that_doubles_forty_times_is_refused() {
    let mut variables = vec![variable("A0", "0123456789abcdef")];
    for n in 1..=40 {
        let before = n - 1;
        variables.push(variable(&format!("A{n}"), &format!("$(A{before})$(A{before})")));
    }
    let told = error(json!({ "env": variables }), &Lookup::default());
    // 16 bytes doubled 13 times are 128 KiB, which is allowed.
    assert!(told.contains("env A14") && told.contains("131072"), "{told}");
}

#[test]
fn values_are_refused_when_they_are_too_large_together() {
    let value = "x".repeat(120 * KIB);
    let many: Vec<_> = (0..40).map(|n| variable(&format!("A{n}"), &value)).collect();
    let told = error(json!({ "env": many }), &Lookup::default());
    assert!(told.contains("env A17") && told.contains("2097152"), "{told}");
    assert_eq!(made(json!({ "env": many[..16] }), &Lookup::default()), Ok(()));
}

#[test]
fn a_value_of_an_object_has_the_same_limits() {
    let from = json!({ "configMapKeyRef": { "name": "big", "key": "key" } });
    let one = json!({ "env": [{ "name": "A", "valueFrom": from }] });
    assert_eq!(made(one.clone(), &with_map(128 * KIB)), Ok(()));
    let told = error(one, &with_map(128 * KIB + 1));
    assert!(told.contains("env A") && told.contains("131072"), "{told}");

    let whole = |n: usize| json!({ "configMapRef": { "name": "big" }, "prefix": format!("P{n}_") });
    let told = error(json!({ "envFrom": [whole(0)] }), &with_map(MIB));
    assert!(told.contains("envFrom P0_key"), "{told}");
    let many: Vec<_> = (0..10_000).map(whole).collect();
    let told = error(json!({ "envFrom": many }), &with_map(100 * KIB));
    assert!(told.contains("envFrom P20_key") && told.contains("2097152"), "{told}");
}

#[test]
fn a_command_and_its_arguments_have_the_same_limits() {
    let env = [variable("A", &"x".repeat(100 * KIB))];
    let told = error(json!({ "env": env, "command": ["$(A)$(A)"] }), &Lookup::default());
    assert!(told.contains("command[0]") && told.contains("131072"), "{told}");
    let args = vec!["$(A)"; 1000];
    let told = error(json!({ "env": env, "args": args }), &Lookup::default());
    assert!(told.contains("args[19]") && told.contains("2097152"), "{told}");
}
