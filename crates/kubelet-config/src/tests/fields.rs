//! Every field: its default, another valid value, and an invalid one.

mod table;

use serde_json::{Value, json};

use super::{as_document, file_of, load_file, only};
use crate::{FieldPath, KubeletConfiguration, Problem};

/// One field: its path, its default, another value, a bad one, and what has to be set for the other value to be taken.
type Row = (&'static str, Value, Value, Value, Value);

/// A document with two sets of fields.
fn with(mut document: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        document[name] = value.clone();
    }
    document
}

#[test]
fn every_field_has_its_default() {
    let defaults = serde_json::to_value(KubeletConfiguration::default()).unwrap();
    for (path, default, ..) in table::rows() {
        assert_eq!(FieldPath::at(path).get(&defaults).unwrap_or(&Value::Null), &default, "{path}");
    }
}

#[test]
fn every_field_can_be_set() {
    for (path, default, other, _, company) in table::rows() {
        let shows_something = default != other || path == "runOnce"; // which can only be false
        assert!(shows_something, "{path}");
        let text = file_of(&with(only(path, other.clone()), &company));
        let loaded = load_file(&text).unwrap_or_else(|problems| panic!("{path}: {problems}"));
        assert_eq!(loaded.warnings, [], "{path}");
        assert_eq!(FieldPath::at(path).get(&as_document(&loaded)), Some(&other), "{path}");
        assert!(loaded.is_written(path), "{path}");
    }
}

#[test]
fn every_field_refuses_what_it_cannot_be_and_is_named() {
    for (path, _, _, bad, company) in table::rows() {
        let text = file_of(&with(only(path, bad.clone()), &company));
        let Err(problems) = load_file(&text) else { panic!("{path}: {bad} was taken") };
        let about = |problem: &&Problem| problem.field.to_string().starts_with(path);
        let problem = problems.0.iter().find(about).unwrap_or_else(|| panic!("{path}: {problems}"));
        assert_eq!(problem.source.as_deref(), Some(super::FILE), "{path}");
        if let Some(value) = scalar(&bad) {
            let said = problem.to_string();
            assert!(said.contains(&value), "{path}: {said} does not say {value}");
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[test]
fn every_field_has_a_row() {
    let defaults = serde_json::to_value(KubeletConfiguration::default()).unwrap();
    let mut fields = Vec::new();
    leaves("", &defaults, &mut fields);
    let rows: Vec<&str> = table::rows().into_iter().map(|row| row.0).collect();
    let missing: Vec<&String> = fields.iter().filter(|f| !rows.contains(&f.as_str())).collect();
    assert!(missing.is_empty(), "no rows for {missing:?}");
    assert!(fields.len() > 120, "only {} fields", fields.len());
}

/// Nested fields count by themselves.
fn leaves(path: &str, value: &Value, found: &mut Vec<String>) {
    let Some(fields) = value.as_object().filter(|fields| !fields.is_empty()) else {
        found.push(path.to_owned());
        return;
    };
    for (name, value) in fields {
        let dot = if path.is_empty() { "" } else { "." };
        leaves(&format!("{path}{dot}{name}"), value, found);
    }
}

#[test]
fn a_zero_value_means_the_default_where_go_cannot_tell_it_from_an_absent_one() {
    let text = file_of(&json!({
        "maxPods": 0, "port": 0, "syncFrequency": "0s", "cgroupDriver": "", "containerLogMaxSize": "",
        "eventBurst": 0, "address": "", "podLogsDir": "", "logging": {"format": ""},
    }));
    let loaded = load_file(&text).unwrap().configuration;
    let expected = load_file(&file_of(&json!({}))).unwrap().configuration;
    assert_eq!(loaded, expected);
}

#[test]
fn a_zero_value_is_kept_where_go_can_tell_it_from_an_absent_one() {
    let text = file_of(&json!({
        "resolvConf": "", "healthzPort": 0, "registryPullQPS": 0, "oomScoreAdj": 0, "enforceNodeAllocatable": [],
        "evictionHard": {},
    }));
    let loaded = load_file(&text).unwrap().configuration;
    assert_eq!(loaded.resolv_conf, "");
    assert_eq!((loaded.healthz_port, loaded.registry_pull_qps, loaded.oom_score_adj), (0, 0, 0));
    assert_eq!(loaded.enforce_node_allocatable, []);
    assert!(loaded.eviction_hard.is_empty());
}
