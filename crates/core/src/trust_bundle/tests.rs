//! Which bundles are selected, and what the file says.

use serde_json::{Value, json};

use super::*;

fn source(text: &Value) -> ClusterTrustBundleProjection {
    let mut source = json!({ "path": "ca.pem" });
    source.as_object_mut().unwrap().extend(text.as_object().unwrap().clone());
    serde_json::from_value(source).unwrap()
}

/// A bundle with a certificate of each of these bytes.
fn bundle(signer: Option<&str>, labels: &Value, bytes: &[u8]) -> Arc<ClusterTrustBundle> {
    let text: String = bytes.iter().map(|byte| pem::block("CERTIFICATE", &[*byte; 3])).collect();
    let spec = json!({ "signerName": signer, "trustBundle": text });
    let bundle = json!({ "metadata": { "labels": labels }, "spec": spec });
    Arc::new(serde_json::from_value(bundle).unwrap())
}

fn bundles() -> TrustBundles {
    let all = [
        ("own", bundle(None, &json!({}), &[9, 1])),
        ("acme:a", bundle(Some("acme/ca"), &json!({ "env": "prod", "old": "" }), &[7, 3])),
        ("acme:b", bundle(Some("acme/ca"), &json!({ "env": "prod" }), &[3, 5])),
        ("acme:c", bundle(Some("acme/ca"), &json!({ "env": "test" }), &[8])),
        ("other:a", bundle(Some("other/ca"), &json!({ "env": "prod" }), &[2])),
    ];
    all.into_iter().map(|(name, bundle)| (name.to_owned(), bundle)).collect()
}

/// The bytes of the certificates in the file.
fn made(text: &Value) -> Result<Vec<u8>, TrustBundleError> {
    let text = trust_anchors(&source(text), &bundles())?;
    Ok(pem::certificates(&text).unwrap().into_iter().map(|der| der[0]).collect())
}

#[test]
fn bundles_are_selected_by_name_or_by_signer_and_labels() {
    let of = |selector: Value| json!({ "signerName": "acme/ca", "labelSelector": selector });
    let rule = |operator: &str, key: &str, values: Value| {
        of(json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] }))
    };
    let rows = [
        (json!({ "name": "own" }), vec![1, 9]),
        (of(json!({})), vec![3, 5, 7, 8]),
        (of(json!({ "matchLabels": { "env": "prod" } })), vec![3, 5, 7]),
        (rule("In", "env", json!(["test", "dev"])), vec![8]),
        (rule("NotIn", "env", json!(["test"])), vec![3, 5, 7]),
        (rule("Exists", "old", json!(null)), vec![3, 7]),
        (rule("DoesNotExist", "old", json!(null)), vec![3, 5, 8]),
    ];
    for (text, bytes) in rows {
        assert_eq!(made(&text), Ok(bytes), "{text}");
    }
}

#[test]
fn a_bundle_that_is_missing_is_an_error_unless_the_source_is_optional() {
    let signer = |signer: &str| json!({ "signerName": signer, "labelSelector": {} });
    let rows = [
        (json!({ "name": "gone" }), TrustBundleError::NotFound("gone".to_owned())),
        (signer("gone/ca"), TrustBundleError::NoneSelected { signer: "gone/ca".to_owned() }),
        // Without a selector nothing is selected.
        (
            json!({ "signerName": "acme/ca" }),
            TrustBundleError::NoneSelected { signer: "acme/ca".to_owned() },
        ),
    ];
    for (mut text, error) in rows {
        assert_eq!(made(&text), Err(error));
        text["optional"] = json!(true);
        assert_eq!(made(&text), Ok(vec![]));
    }
}

#[test]
fn a_changed_bundle_concerns_the_pods_that_may_have_it() {
    let pod = |text: &Value| -> Pod {
        let sources = json!([{ "clusterTrustBundle": source(text) }]);
        let volumes = json!([{ "name": "v", "projected": { "sources": sources } }]);
        let mounts = json!([{ "name": "v", "mountPath": "/v" }]);
        let containers = json!([{ "name": "c", "volumeMounts": mounts }]);
        let spec = json!({ "containers": containers, "volumes": volumes });
        serde_json::from_value(json!({ "spec": spec })).unwrap()
    };
    let (by_name, by_signer) =
        (pod(&json!({ "name": "a" })), pod(&json!({ "signerName": "acme/ca" })));
    let rows = [
        ("a", "", true, false),
        ("b", "", false, false),
        ("x", "acme/ca", false, true),
        ("x", "other/ca", false, false),
    ];
    for (name, signer, named, signed) in rows {
        let changed = TrustBundleName { name: name.to_owned(), signer: signer.to_owned() };
        assert_eq!(
            (changed.is_used_by(&by_name), changed.is_used_by(&by_signer)),
            (named, signed),
            "{changed:?}"
        );
    }
}
