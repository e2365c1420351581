//! Merges the layers of a configuration: defaults, then the file, then drop-ins, then flags.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::configuration::KubeletConfiguration;
use crate::decode::{self, ConfigFile, document};
use crate::defaults::EVICTION_HARD;
use crate::field_path::FieldPath;
use crate::problem::{Problem, Problems};
use crate::validate::validate;

/// Fields of the configuration from one source.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigLayer {
    /// The path of the file, or the flag.
    pub source: String,
    /// The fields that it sets.
    pub value: Value,
}

/// A configuration, and the layers it was made from.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The merged configuration.
    pub configuration: KubeletConfiguration,
    /// Problems that are no reason not to start.
    pub warnings: Vec<Problem>,
    layers: Vec<ConfigLayer>,
}

impl LoadedConfig {
    /// Whether a layer sets this field, to whatever value.
    pub fn is_written(&self, path: &str) -> bool {
        let field = FieldPath::at(path);
        self.layers.iter().any(|layer| field.get(&layer.value).is_some())
    }

    /// The fields that layers set, such as `maxPods` and `authentication`, without unknown ones.
    pub fn written(&self) -> Vec<String> {
        let known = serde_json::to_value(&self.configuration).unwrap_or_default();
        let fields = self.layers.iter().filter_map(|layer| layer.value.as_object());
        let names = fields.flat_map(Map::keys).filter(|name| known.get(*name).is_some());
        let names: BTreeSet<&String> = names.collect();
        names.into_iter().cloned().collect()
    }
}

/// The configuration that a kubelet starts with. Unknown fields are warnings.
///
/// # Errors
/// Every problem, each with its source.
pub fn load(
    file: Option<ConfigFile<'_>>,
    drop_ins: &[ConfigFile<'_>],
    flags: &[ConfigLayer],
) -> Result<LoadedConfig, Problems> {
    let (mut files, mut warnings, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for text in file.iter().chain(drop_ins) {
        match document(text) {
            Ok(read) => {
                warnings.extend(read.strict_problems);
                files.push(ConfigLayer {
                    source: text.path.display().to_string(),
                    value: read.value,
                });
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
    problems.extend(flags.iter().flat_map(flag_problems));
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let value = merged(file.is_some(), &files, flags);
    let layers: Vec<ConfigLayer> = files.into_iter().chain(flags.iter().cloned()).collect();
    let blamed = |problem| with_source(problem, &layers);
    let configuration = decode_and_validate(value)
        .map_err(|problems| Problems(problems.into_iter().map(blamed).collect()))?;
    Ok(LoadedConfig { configuration, warnings, layers })
}

/// Every problem that the strict decoder and the kubelet's validation find in a file.
pub fn check(text: ConfigFile<'_>) -> Vec<Problem> {
    let read = match document(&text) {
        Ok(read) => read,
        Err(problems) => return problems,
    };
    let layers = [ConfigLayer { source: text.path.display().to_string(), value: read.value }];
    let judged = decode_and_validate(merged(true, &layers, &[])).err().unwrap_or_default();
    let blamed = |problem: Problem| problem.in_source(&layers[0].source);
    read.strict_problems.into_iter().chain(judged.into_iter().map(blamed)).collect()
}

fn decode_and_validate(value: Value) -> Result<KubeletConfiguration, Vec<Problem>> {
    let configuration = decode::deserialize(value)?;
    let problems = validate(&configuration);
    if problems.is_empty() { Ok(configuration) } else { Err(problems) }
}

/// Each flag is decoded by itself, so that its problems name it.
fn flag_problems(flag: &ConfigLayer) -> Vec<Problem> {
    let wrong = decode::deserialize(flag.value.clone()).err().unwrap_or_default();
    wrong.into_iter().map(|problem| problem.in_source(&flag.source)).collect()
}

/// The source of a problem is the last layer that sets the field.
fn with_source(problem: Problem, layers: &[ConfigLayer]) -> Problem {
    let says = |layer: &&ConfigLayer| problem.field.get(&layer.value).is_some();
    let touches = |layer: &&ConfigLayer| layer.value.get(problem.field.top()).is_some();
    let layers = layers.iter().rev();
    match layers.clone().find(says).or_else(|| layers.clone().find(touches)) {
        Some(layer) => problem.in_source(&layer.source),
        None => problem,
    }
}

fn merged(has_file: bool, files: &[ConfigLayer], flags: &[ConfigLayer]) -> Value {
    let mut value = json!({});
    for (number, layer) in files.iter().enumerate() {
        merge_patch(&mut value, &layer.value);
        if number == 0 && has_file {
            with_usual_thresholds(&mut value);
        }
    }
    let mut value = decode::drop_zero_values(value);
    for layer in flags {
        apply_flag(&mut value, &layer.value);
    }
    derive(&mut value);
    value
}

/// RFC 7386: objects are merged, lists are replaced, and null removes.
fn merge_patch(value: &mut Value, with: &Value) {
    let Value::Object(with) = with else {
        *value = with.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(fields) = value else { return };
    for (name, with) in with {
        if with.is_null() {
            fields.remove(name);
        } else {
            merge_patch(fields.entry(name.clone()).or_insert(Value::Null), with);
        }
    }
}

/// A flag replaces the value, except for feature gates, which are merged.
fn apply_flag(value: &mut Value, flag: &Value) {
    for (name, with) in flag.as_object().into_iter().flatten() {
        let is_leaf = !matches!(
            name.as_str(),
            "authentication" | "authorization" | "logging" | "featureGates"
        );
        if is_leaf {
            value[name] = with.clone();
        } else {
            merge_patch(value, &json!({ name: with }));
        }
    }
}

/// A file without evictionHard has the default thresholds, to which drop-ins add.
fn with_usual_thresholds(value: &mut Value) {
    let adds = value.get("mergeDefaultEvictionSettings") == Some(&Value::Bool(true));
    if adds || value.get("evictionHard").is_none_or(Value::is_null) {
        add_usual_thresholds(value);
    }
}

fn add_usual_thresholds(value: &mut Value) {
    let usual = EVICTION_HARD.map(|(signal, amount)| (signal.to_owned(), Value::from(amount)));
    let mut thresholds = Value::Object(usual.into_iter().collect());
    if let Some(own) = value.get("evictionHard") {
        merge_patch(&mut thresholds, own);
    }
    value["evictionHard"] = thresholds;
}

/// Defaults that depend on other fields.
fn derive(value: &mut Value) {
    let several = value.get("maxParallelImagePulls").and_then(Value::as_i64) >= Some(2);
    if several && value.get("serializeImagePulls").is_none() {
        value["serializeImagePulls"] = Value::Bool(false);
    }
    if let (None, Some(update)) =
        (value.get("nodeStatusReportFrequency"), value.get("nodeStatusUpdateFrequency"))
    {
        value["nodeStatusReportFrequency"] = update.clone();
    }
    if value.get("podPidsLimit").and_then(Value::as_i64).is_some_and(|limit| limit < 0) {
        value["podPidsLimit"] = Value::from(-1);
    }
    if value.get("mergeDefaultEvictionSettings") == Some(&Value::Bool(true)) {
        add_usual_thresholds(value);
    }
}
