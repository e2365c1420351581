//! From JSON to a pod, a ConfigMap or a Secret, with errors that name the field.

mod entries;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{ErrorKind, FieldError};
use super::wire;
use entries::Entries;

/// A pod as its JSON says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The pod, without fields that it does not know.
    pub pod: Pod,
    /// Fields that no pod has, such as `spec.containers[0].imagePulPolicy`: most likely slips of
    /// the pen, which the caller warns about or refuses. One that holds null is not told.
    pub unknown_fields: Vec<String>,
}

/// Why a JSON value is not what it was taken for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// It says itself that it is something else.
    #[error("this is kind {kind:?} of apiVersion {api_version:?}, not a {wanted} of v1")]
    OtherKind {
        /// What it was taken for.
        wanted: &'static str,
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// Some fields hold what they cannot hold.
    #[error("{}", list(.0))]
    Fields(Vec<FieldError>),
}

/// Reads a pod; texts, numbers and lists that say nothing are as good as absent.
pub fn decode_pod(mut value: Value) -> Result<Decoded, DecodeError> {
    check_kind("Pod", &value)?;
    wire::write_numbers_as_quantities(&mut value);
    let mut known = encode(&read::<Pod>(value.clone())?)?;
    let unknown_fields = unknown_fields(&value, &known);
    let malformed = wire::settle(&mut known);
    if malformed.is_empty() {
        Ok(Decoded { pod: read(known)?, unknown_fields })
    } else {
        Err(DecodeError::Fields(malformed))
    }
}

/// Reads a ConfigMap; fields that no ConfigMap has come with it.
pub fn decode_config_map(mut value: Value) -> Result<(ConfigMap, Vec<String>), DecodeError> {
    check_kind("ConfigMap", &value)?;
    entries::settle(&mut value, &[("data", Entries::Text), ("binaryData", Entries::Base64)])?;
    read_known(&value)
}

/// Reads a Secret; fields that no Secret has come with it. What it holds is in `data`, as an API server leaves it, and in no error.
pub fn decode_secret(mut value: Value) -> Result<(Secret, Vec<String>), DecodeError> {
    check_kind("Secret", &value)?;
    entries::settle(
        &mut value,
        &[("data", Entries::HiddenBase64), ("stringData", Entries::HiddenText)],
    )?;
    let (mut secret, unknown_fields): (Secret, _) = read_known(&value)?;
    let plain = secret.string_data.take().into_iter().flatten();
    let plain = plain.map(|(key, text)| (key, k8s_openapi::ByteString(text.into_bytes())));
    secret.data.get_or_insert_default().extend(plain);
    Ok((secret, unknown_fields))
}

fn read_known<T: DeserializeOwned + Serialize>(
    value: &Value,
) -> Result<(T, Vec<String>), DecodeError> {
    let object: T = read(value.clone())?;
    let unknown_fields = unknown_fields(value, &encode(&object)?);
    Ok((object, unknown_fields))
}

fn check_kind(wanted: &'static str, value: &Value) -> Result<(), DecodeError> {
    let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version == "v1" && kind == wanted {
        return Ok(());
    }
    Err(DecodeError::OtherKind { wanted, api_version, kind })
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        wrong_type(field, error.into_inner().to_string())
    })
}

fn encode<T: Serialize>(object: &T) -> Result<Value, DecodeError> {
    serde_json::to_value(object).map_err(|error| wrong_type(String::new(), error.to_string()))
}

fn wrong_type(field: String, error_text: String) -> DecodeError {
    let detail = describe_type_error(&error_text).unwrap_or(error_text);
    let kind = ErrorKind::TypeInvalid;
    DecodeError::Fields(vec![FieldError { field, kind, value: None, detail }])
}

/// What people write, for what the decoder says of its own types.
fn describe_type_error(error_text: &str) -> Option<String> {
    let (found, expected) = error_text.strip_prefix("invalid type: ")?.split_once(", expected ")?;
    let found = match found.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer", number)) => format!("the number {}", number.replace('`', "")),
        Some(("boolean", word)) => word.replace('`', ""),
        None if found == "sequence" => "a list".to_owned(),
        None if found == "map" => "a map of fields".to_owned(),
        Some(_) | None => found.to_owned(),
    };
    let wanted = match expected {
        "a sequence" => "a list: begin each item with a dash",
        "a string" => "text: put it in quotes",
        "a boolean" => "true or false",
        "a map" => "a map of fields",
        whole if whole.starts_with(['i', 'u']) => "a whole number",
        object if object.starts_with("struct ") => "a map of fields",
        other => other,
    };
    Some(format!("it is {found}, and must be {wanted}"))
}

fn unknown_fields(given: &Value, known: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    collect_unknown("", given, known, &mut unknown);
    unknown
}

/// What was read and cannot be written again was never understood.
fn collect_unknown(at: &str, given: &Value, known: &Value, unknown: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (name, field) in given.iter().filter(|(_, field)| !field.is_null()) {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                match known.get(name) {
                    Some(known) => collect_unknown(&path, field, known, unknown),
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (i, (given, known)) in given.iter().zip(known).enumerate() {
                collect_unknown(&format!("{at}[{i}]"), given, known, unknown);
            }
        }
        _ => {}
    }
}

fn list(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::decode_pod;
    use serde_json::{Value, json};

    fn pod(spec: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": spec })
    }

    #[test]
    fn a_wrong_type_is_reported_with_the_path_to_its_field() {
        let ports = json!([{ "containerPort": "eighty" }]);
        let decoded = decode_pod(pod(&json!({ "containers": [{ "name": "a", "ports": ports }] })));
        let error = decoded.unwrap_err().to_string();
        let expected = "spec.containers[0].ports[0].containerPort: Invalid value: ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn an_invalid_quantity_is_reported_with_its_key() {
        let resources = json!({ "limits": { "cpu": "lots" } });
        let containers = json!([{ "name": "a", "resources": resources }]);
        let error = decode_pod(pod(&json!({ "containers": containers }))).unwrap_err().to_string();
        let expected = "spec.containers[0].resources.limits[cpu]: Invalid value: \"lots\": ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn unknown_fields_are_listed_and_the_rest_is_read() {
        let containers = json!([{ "name": "a", "imagePulPolicy": "Always", "tty": false }]);
        let decoded = decode_pod(pod(&json!({ "containers": containers, "extra": 0 }))).unwrap();
        let expected = ["spec.containers[0].imagePulPolicy", "spec.extra"];
        assert_eq!(decoded.unknown_fields, expected);
        assert_eq!(decoded.pod.spec.unwrap().containers[0].tty, None);
    }

    #[test]
    fn only_a_pod_of_v1_is_a_pod() {
        let error = decode_pod(json!({ "apiVersion": "v1", "kind": "Service" })).unwrap_err();
        let expected = "this is kind \"Service\" of apiVersion \"v1\", not a Pod of v1";
        assert_eq!(error.to_string(), expected);
        assert!(decode_pod(json!([])).is_err());
    }
}
