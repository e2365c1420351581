//! What becomes of the entries of ConfigMaps and Secrets.

use k8s_openapi::ByteString;
use serde_json::json;

use super::super::{decode_config_map, decode_secret};
use super::*;

fn object(kind: &str, fields: &Value) -> Value {
    let mut value = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": "a" } });
    let fields = fields.as_object().cloned().unwrap_or_default();
    value.as_object_mut().unwrap().extend(fields);
    value
}

fn refusal(value: Value) -> String {
    let read = match value["kind"].as_str() {
        Some("Secret") => decode_secret(value).map(drop),
        _ => decode_config_map(value).map(drop),
    };
    read.unwrap_err().to_string()
}

#[test]
fn a_config_map_holds_text_and_bytes() {
    let fields = json!({
        "data": { "a": "1", "empty": null }, "binaryData": { "b": "AAE=" },
        "immutable": true, "datum": {},
    });
    let (map, unknown) = decode_config_map(object("ConfigMap", &fields)).unwrap();
    let data = map.data.unwrap();
    assert_eq!((data["a"].as_str(), data["empty"].as_str()), ("1", ""));
    assert_eq!(map.binary_data.unwrap()["b"], ByteString(vec![0, 1]));
    assert_eq!(unknown, ["datum"]);
}

#[test]
fn text_in_a_secret_goes_over_its_data_as_on_an_api_server() {
    let fields = json!({
        "data": { "a": "b2xk\n", "b": "AA\n==\n" }, "stringData": { "a": "new" },
    });
    let (secret, unknown) = decode_secret(object("Secret", &fields)).unwrap();
    let data = secret.data.unwrap();
    assert_eq!((&data["a"].0, &data["b"].0), (&b"new".to_vec(), &vec![0]));
    assert_eq!((secret.string_data, unknown), (None, Vec::new()));
}

#[test]
fn errors_name_the_key_and_no_secret_value() {
    let base64 = "must be base64: write the output of `base64 -w0`, or text in stringData";
    let both = format!("data[a]: Invalid value: {base64}; data[b]: Invalid value: {base64}");
    let rows = [
        (
            object("ConfigMap", &json!({ "data": { "port": 80 } })),
            "data[port]: Invalid value: 80: must be text: put it in quotes",
        ),
        (
            object("ConfigMap", &json!({ "data": ["a"] })),
            "data: Invalid value: must be a map of keys to values",
        ),
        (
            object("ConfigMap", &json!({ "binaryData": { "a": "no" } })),
            "binaryData[a]: Invalid value: must be base64: write the output of `base64 -w0`, or text in data",
        ),
        (object("Secret", &json!({ "data": { "a": "hunter2", "b": 4711 } })), &both),
        (
            object("Secret", &json!({ "stringData": { "pin": 4711 } })),
            "stringData[pin]: Invalid value: must be text: put it in quotes",
        ),
        (
            object("Secret", &json!({ "data": "hunter2" })),
            "data: Invalid value: must be a map of keys to values",
        ),
        (
            object("Pod", &json!({})),
            "this is kind \"Pod\" of apiVersion \"v1\", not a ConfigMap of v1",
        ),
    ];
    for (value, want) in rows {
        assert_eq!(refusal(value), want);
    }
}
