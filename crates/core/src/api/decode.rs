//! From JSON to a pod, with errors that name the field.

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::error::{ErrorKind, FieldError};
use super::wire;

/// A pod as its JSON says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The pod.
    pub pod: Pod,
    /// Fields that no pod has, such as `spec.containers[0].imagePulPolicy`: most likely slips of
    /// the pen, which the caller warns about or refuses. One that holds null is not told.
    pub unknown_fields: Vec<String>,
}

/// Why a JSON value is not a pod.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// It says itself that it is something else.
    #[error("this is kind {kind:?} of apiVersion {api_version:?}, not a Pod of v1")]
    NotAPod {
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
    check_kind(&value)?;
    wire::write_numbers_as_quantities(&mut value);
    let mut known = encode(&read(value.clone())?)?;
    let mut unknown_fields = Vec::new();
    collect_unknown("", &value, &known, &mut unknown_fields);
    let malformed = wire::settle(&mut known);
    if malformed.is_empty() {
        Ok(Decoded { pod: read(known)?, unknown_fields })
    } else {
        Err(DecodeError::Fields(malformed))
    }
}

fn check_kind(value: &Value) -> Result<(), DecodeError> {
    let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version == "v1" && kind == "Pod" {
        return Ok(());
    }
    Err(DecodeError::NotAPod { api_version, kind })
}

fn read(value: Value) -> Result<Pod, DecodeError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        wrong_type(field, error.into_inner().to_string())
    })
}

fn encode(pod: &Pod) -> Result<Value, DecodeError> {
    serde_json::to_value(pod).map_err(|error| wrong_type(String::new(), error.to_string()))
}

fn wrong_type(field: String, detail: String) -> DecodeError {
    let kind = ErrorKind::TypeInvalid;
    DecodeError::Fields(vec![FieldError { field, kind, value: None, detail }])
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
    use super::{DecodeError, decode_pod};
    use serde_json::{Value, json};

    fn pod(spec: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": spec })
    }

    #[test]
    fn a_wrong_type_is_told_with_the_path_to_its_field() {
        let ports = json!([{ "containerPort": "eighty" }]);
        let decoded = decode_pod(pod(&json!({ "containers": [{ "name": "a", "ports": ports }] })));
        let error = decoded.unwrap_err().to_string();
        let expected = "spec.containers[0].ports[0].containerPort: Invalid value: ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn an_amount_that_is_none_is_told_with_its_key() {
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
        let expected =
            DecodeError::NotAPod { api_version: "v1".to_owned(), kind: "Service".to_owned() };
        assert_eq!(error, expected);
        assert!(decode_pod(json!([])).is_err());
    }
}
