//! Our defaulting and validation against the answers of a real kube-apiserver.
//!
//! `testing/pods/*.yaml` are the questions, `testing/pods/golden/*.json` the answers, written by
//! `cargo xtask golden`. When a test here fails, it is our code that is wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::api::create::prepare;
use oarsman_core::api::decode::{DecodeError, decode_pod};
use oarsman_core::api::defaults::set_defaults;
use oarsman_core::api::validate::validate_pod;
use serde_json::{Value, json};

/// Fewer would mean that the manifests were not found.
const LEAST_MANIFESTS: usize = 60;

struct GoldenCase {
    name: String,
    manifest: Value,
    answer: Value,
}

fn cases() -> Vec<GoldenCase> {
    let pods = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/pods");
    let mut manifests: Vec<PathBuf> =
        fs::read_dir(&pods).unwrap().map(|entry| entry.unwrap().path()).collect();
    manifests.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    manifests.sort();
    assert!(manifests.len() >= LEAST_MANIFESTS, "only {} manifests", manifests.len());
    manifests.iter().map(|manifest| read_case(&pods, manifest)).collect()
}

fn read_case(pods: &Path, manifest: &Path) -> GoldenCase {
    let name = manifest.file_stem().unwrap().to_str().unwrap().to_owned();
    let answer = pods.join("golden").join(format!("{name}.json"));
    let answer = fs::read_to_string(&answer)
        .unwrap_or_else(|error| panic!("{}: {error}; run cargo xtask golden", answer.display()));
    GoldenCase {
        manifest: serde_saphyr::from_str(&fs::read_to_string(manifest).unwrap()).unwrap(),
        answer: serde_json::from_str(&answer).unwrap(),
        name,
    }
}

/// The pod as an API server would have it just before it checks it.
fn created(manifest: &Value) -> Result<Pod, DecodeError> {
    let mut pod = decode_pod(manifest.clone())?.pod;
    pod.metadata.namespace.get_or_insert_with(|| "default".to_owned());
    set_defaults(&mut pod);
    prepare(&mut pod, Timestamp::UNIX_EPOCH);
    Ok(pod)
}

fn report(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn an_accepted_pod_has_the_same_defaults() {
    let mut complaints = Vec::new();
    for case in cases() {
        let Some(expected) = case.answer.get("accepted") else { continue };
        match created(&case.manifest) {
            Ok(pod) => {
                let mut ours = serde_json::to_value(&pod).unwrap();
                forget_transition_times(&mut ours);
                compare(&case.name, "", expected, &ours, &mut complaints);
                let errors = validate_pod(&pod);
                complaints.extend(errors.iter().map(|error| format!("{}: {error}", case.name)));
            }
            Err(error) => complaints.push(format!("{}: {error}", case.name)),
        }
    }
    report(&complaints);
}

/// The server stamps conditions with the time it has.
fn forget_transition_times(pod: &mut Value) {
    let conditions = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        condition.as_object_mut().unwrap().remove("lastTransitionTime");
    }
}

/// Names the path of every difference.
fn compare(case: &str, at: &str, expected: &Value, ours: &Value, complaints: &mut Vec<String>) {
    match (expected, ours) {
        (Value::Object(expected), Value::Object(ours)) => {
            for key in expected.keys().chain(ours.keys().filter(|k| !expected.contains_key(*k))) {
                let (theirs, ours) = (expected.get(key), ours.get(key));
                let (theirs, ours) = (theirs.unwrap_or(&Value::Null), ours.unwrap_or(&Value::Null));
                compare(case, &format!("{at}.{key}"), theirs, ours, complaints);
            }
        }
        (Value::Array(expected), Value::Array(ours)) if expected.len() == ours.len() => {
            for (i, (expected, ours)) in expected.iter().zip(ours).enumerate() {
                compare(case, &format!("{at}[{i}]"), expected, ours, complaints);
            }
        }
        _ if expected == ours => {}
        _ => complaints.push(format!("{case}: {at}: the server has {expected}, we have {ours}")),
    }
}

#[test]
fn a_refused_pod_has_the_same_errors() {
    let mut complaints = Vec::new();
    for case in cases() {
        let Some(expected) = case.answer.get("refused").and_then(Value::as_array) else { continue };
        let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or("").to_owned();
        let mut theirs: Vec<(String, String)> =
            expected.iter().map(|cause| (text(cause, "field"), text(cause, "reason"))).collect();
        let pod = created(&case.manifest).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        for error in validate_pod(&pod) {
            let ours = (error.field.clone(), error.kind.reason().to_owned());
            match theirs.iter().position(|theirs| *theirs == ours) {
                Some(i) => drop(theirs.remove(i)),
                None => complaints.push(format!("{}: we alone say {error}", case.name)),
            }
        }
        let missed = theirs.iter();
        complaints.extend(missed.map(|(field, reason)| {
            format!("{}: the server alone says {reason} of {field}", case.name)
        }));
    }
    report(&complaints);
}

#[test]
fn what_the_server_cannot_decode_we_cannot_either_or_we_name_the_unknown_fields() {
    let mut complaints = Vec::new();
    for case in cases() {
        let Some(message) = case.answer.get("undecodable").and_then(Value::as_str) else {
            continue;
        };
        let unknown: Vec<&str> = message
            .split("unknown field ")
            .skip(1)
            .filter_map(|rest| rest.split('"').nth(1))
            .collect();
        match decode_pod(case.manifest) {
            Ok(decoded) if !unknown.is_empty() => {
                let (theirs, ours) = (json!(unknown), json!(decoded.unknown_fields));
                compare(&case.name, "", &theirs, &ours, &mut complaints);
            }
            Ok(_) => complaints.push(format!("{}: the server says {message}", case.name)),
            Err(error) if !names_the_field(message, &error) => {
                complaints.push(format!("{}: {message}\n  we say {error}", case.name));
            }
            Err(_) => {}
        }
    }
    report(&complaints);
}

/// The server's words have the path without indices, as in `field EnvVar.spec.containers.env.value`.
fn names_the_field(message: &str, error: &DecodeError) -> bool {
    let Some((_, rest)) = message.split_once("Go struct field ") else { return true };
    let path = rest.split(' ').next().unwrap_or_default();
    let path = path.split_once('.').map_or("", |(_, path)| path);
    let DecodeError::Fields(errors) = error else { return false };
    let digits_and_brackets = |c: char| c.is_ascii_digit() || "[]".contains(c);
    errors.iter().any(|error| error.field.replace(digits_and_brackets, "") == path)
}
