//! Parses the text of a configuration file.

use std::path::Path;

use oarsman_manifest::{ManifestError, ParsedDocument, parsed_documents};
use serde_json::Value;

use crate::configuration::KubeletConfiguration;
use crate::field_path::FieldPath;
use crate::problem::Problem;
use crate::suggestion::suggestion;

/// The apiVersion of every file.
const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
const KIND: &str = "KubeletConfiguration";

/// Fields that hold paths; relative ones are resolved from the directory of the file.
const PATHS: [&str; 7] = [
    "staticPodPath",
    "authentication.x509.clientCAFile",
    "tlsCertFile",
    "tlsPrivateKeyFile",
    "resolvConf",
    "volumePluginDir",
    "podLogsDir",
];

/// Fields whose zero value (0, 0s or an empty text) means the default, since the Go kubelet cannot tell it from an absent field.
const ZERO_MEANS_DEFAULT: [&str; 43] = [
    "syncFrequency",
    "fileCheckFrequency",
    "httpCheckFrequency",
    "address",
    "port",
    "tlsMinVersion",
    "authentication.webhook.cacheTTL",
    "authorization.mode",
    "authorization.webhook.cacheAuthorizedTTL",
    "authorization.webhook.cacheUnauthorizedTTL",
    "registryBurst",
    "imagePullCredentialsVerificationPolicy",
    "eventBurst",
    "healthzBindAddress",
    "streamingConnectionIdleTimeout",
    "nodeStatusUpdateFrequency",
    "nodeStatusReportFrequency",
    "nodeLeaseDurationSeconds",
    "imageMinimumGCAge",
    "volumeStatsAggPeriod",
    "cgroupDriver",
    "cpuManagerPolicy",
    "cpuManagerReconcilePeriod",
    "memoryManagerPolicy",
    "topologyManagerPolicy",
    "topologyManagerScope",
    "runtimeRequestTimeout",
    "hairpinMode",
    "maxPods",
    "maxOpenFiles",
    "contentType",
    "kubeAPIBurst",
    "evictionPressureTransitionPeriod",
    "memorySwap.swapBehavior",
    "containerLogMaxSize",
    "configMapAndSecretChangeDetectionStrategy",
    "volumePluginDir",
    "logging.format",
    "logging.flushFrequency",
    "memoryReservationPolicy",
    "containerRuntimeEndpoint",
    "podLogsDir",
    "userNamespaces.idsPerPod",
];

/// The content of a file, which the caller has read.
#[derive(Clone, Copy, Debug)]
pub struct ConfigFile<'t> {
    /// The absolute path: it names the file in messages, and relative paths are resolved from its directory.
    pub path: &'t Path,
    /// The bytes of the file.
    pub bytes: &'t [u8],
}

/// The fields of a file, without apiVersion and kind.
pub(crate) struct ConfigDocument {
    pub(crate) value: Value,
    /// What a strict decoder refuses: unknown fields, and fields that occur twice.
    pub(crate) strict_problems: Vec<Problem>,
}

/// Parses a file.
pub(crate) fn document(text: &ConfigFile<'_>) -> Result<ConfigDocument, Vec<Problem>> {
    let of_file = |problem: Problem| problem.in_source(&text.path.display().to_string());
    let told = |problems: Vec<Problem>| problems.into_iter().map(of_file).collect::<Vec<_>>();
    let ParsedDocument { value, repeated } =
        single_document(text.bytes).map_err(|problem| told(vec![problem]))?;
    let mut value = strip_type_meta(value).map_err(told)?;
    let typed = deserialize(drop_zero_values(value.clone())).map_err(told)?;
    let mut strict_problems: Vec<Problem> = repeated
        .iter()
        .map(|path| {
            Problem::of(FieldPath::at(path), "is said twice; the last one counts: drop the others")
        })
        .collect();
    strict_problems.extend(unknown(&value, &typed));
    resolve(&mut value, text.path);
    Ok(ConfigDocument { value, strict_problems: told(strict_problems) })
}

fn single_document(bytes: &[u8]) -> Result<ParsedDocument, Problem> {
    let mut documents =
        parsed_documents(bytes).map_err(|error| Problem::of_all(error.to_string()))?;
    match (documents.len(), documents.pop()) {
        (1, Some(document)) => Ok(document),
        (0, _) | (_, None) => Err(Problem::of_all(format!(
            "is empty; begin it with the lines `apiVersion: {API_VERSION}` and `kind: {KIND}`"
        ))),
        (several, Some(_)) => {
            Err(Problem::of_all(ManifestError::Several(several).to_string().replace("Pod", KIND)))
        }
    }
}

/// Checks and removes apiVersion and kind.
fn strip_type_meta(mut value: Value) -> Result<Value, Vec<Problem>> {
    if !value.is_object() {
        return Err(vec![Problem::of_all("is no set of fields; write them as `name: value`")]);
    }
    let mut problems = Vec::new();
    for (name, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        let field = FieldPath::at(name);
        match field.remove(&mut value) {
            Some(Value::String(word)) if word == expected => {}
            Some(other) => problems.push(Problem::of(
                field,
                format!("{other} is none that can be read; write `{name}: {expected}`"),
            )),
            None => {
                problems
                    .push(Problem::of(field, format!("is missing; write `{name}: {expected}`")));
            }
        }
    }
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

/// Removes fields whose value means the same as their absence.
pub(crate) fn drop_zero_values(value: Value) -> Value {
    let mut value = without_nulls(value);
    for field in ZERO_MEANS_DEFAULT.map(FieldPath::at) {
        if field.get(&value).is_some_and(is_nothing) {
            field.remove(&mut value);
        }
    }
    value
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, field)| !field.is_null())
            .map(|(name, field)| (name, without_nulls(field)))
            .collect(),
        other => other,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            text.is_empty() || crate::GoDuration::parse(text).is_ok_and(crate::GoDuration::is_zero)
        }
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The configuration of a document, or every field with a value of the wrong type.
pub(crate) fn deserialize(mut value: Value) -> Result<KubeletConfiguration, Vec<Problem>> {
    let mut problems = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(configuration) if problems.is_empty() => return Ok(configuration),
            Ok(_) => return Err(problems),
            Err(error) => error,
        };
        let field = FieldPath::from_serde_path(error.path());
        problems.push(type_problem(field.clone(), field.get(&value), &error.inner().to_string()));
        if field.remove(&mut value).is_none() {
            return Err(problems);
        }
    }
}

fn type_problem(field: FieldPath, value: Option<&Value>, why: &str) -> Problem {
    let text = value.map(ToString::to_string).unwrap_or_default();
    let says_it = why.contains(&text) || why.contains(&format!("`{}`", text.trim_matches('"')));
    Problem::of(field, if says_it { why.to_owned() } else { format!("{text}: {why}") })
}

/// Fields of the document that the configuration does not have.
fn unknown(value: &Value, typed: &KubeletConfiguration) -> Vec<Problem> {
    let mut found = Vec::new();
    if let Ok(read) = serde_json::to_value(typed) {
        compare(value, &read, &FieldPath::default(), &mut found);
    }
    found
}

fn compare(written: &Value, read: &Value, field: &FieldPath, found: &mut Vec<Problem>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (name, value) in written {
                let here = field.clone().key(name);
                match read.get(name) {
                    Some(read) => compare(value, read, &here, found),
                    None => {
                        let meant = suggestion(name, read.keys().map(String::as_str));
                        found.push(Problem::of(
                            here,
                            format!("is no field that the kubelet has{meant}"),
                        ));
                    }
                }
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            for (number, (written, read)) in written.iter().zip(read).enumerate() {
                compare(written, read, &field.clone().item(number), found);
            }
        }
        _ => {}
    }
}

/// Makes relative paths absolute, from the directory of the file.
fn resolve(value: &mut Value, file: &Path) {
    let Some(directory) = file.parent() else { return };
    for field in PATHS.map(FieldPath::at) {
        let path = field.get(value).and_then(Value::as_str).unwrap_or_default().to_owned();
        if !path.is_empty() && !path.starts_with('/') {
            let path = directory.join(path);
            field.set(value, Value::String(clean(&path)));
        }
    }
}

/// A path without `.`, `..` and doubled slashes.
fn clean(path: &Path) -> String {
    let mut steps: Vec<String> = Vec::new();
    for step in path.to_string_lossy().split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step.to_owned()),
        }
    }
    format!("/{}", steps.join("/"))
}
