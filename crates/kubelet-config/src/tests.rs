//! Configuration files, and the configurations they give.

mod drop_ins;
mod fields;
mod files;
mod flags;
mod rules;

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::{ConfigFile, ConfigLayer, FieldPath, LoadedConfig, Problems};

/// The path of the file in these tests.
const FILE: &str = "/etc/kubernetes/kubelet.yaml";

/// Loads one file.
fn load_file(text: &str) -> Result<LoadedConfig, Problems> {
    load_files(text, &[])
}

/// Loads a file and drop-ins after it.
fn load_files(text: &str, drop_ins: &[(&str, &str)]) -> Result<LoadedConfig, Problems> {
    let drop_ins: Vec<ConfigFile<'_>> = drop_ins
        .iter()
        .map(|(path, text)| ConfigFile { path: Path::new(*path), bytes: text.as_bytes() })
        .collect();
    let file = ConfigFile { path: Path::new(FILE), bytes: text.as_bytes() };
    crate::load(Some(file), &drop_ins, &[])
}

/// A file with these fields.
fn file_of(fields: &Value) -> String {
    let mut all =
        json!({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"});
    if let (Some(all), Some(fields)) = (all.as_object_mut(), fields.as_object()) {
        all.extend(fields.clone());
    }
    all.to_string()
}

/// The configuration as a document.
fn as_document(loaded: &LoadedConfig) -> Value {
    serde_json::to_value(&loaded.configuration).unwrap()
}

/// A document with only this field.
fn only(path: &str, value: Value) -> Value {
    let mut document = Value::Object(Map::new());
    FieldPath::at(path).set(&mut document, value);
    document
}

/// The layer of a flag.
fn flag(name: &str, path: &str, value: Value) -> ConfigLayer {
    ConfigLayer { source: format!("--{name}"), value: only(path, value) }
}
