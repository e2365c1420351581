//! Which files a volume has.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::cri_spec::tests::node;
use crate::token::TokenRequestKey;

/// A pod with that volume, mounted.
fn pod(volume: Value) -> Pod {
    let mut volume = volume;
    volume["name"] = json!("v");
    let mounts = json!([{ "name": "v", "mountPath": "/v" }]);
    let limits = json!({ "cpu": "1500m", "memory": "64Mi" });
    let metadata = json!({
        "name": "web", "namespace": "default", "uid": "u",
        "labels": { "b": "two\n\"2\"", "a": "1" }, "annotations": { "note": "said" },
    });
    let main = json!({ "name": "main", "volumeMounts": mounts, "resources": { "limits": limits } });
    let spec = json!({ "containers": [main], "volumes": [volume] });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn lookup() -> Lookup {
    let mut lookup = Lookup::default();
    let name = |name: &str| crate::ids::FullName {
        name: name.to_owned(),
        namespace: "default".to_owned(),
    };
    let map = json!({ "data": { "a": "text", "b": "more" }, "binaryData": { "c": "AAE=" } });
    lookup.config_maps.insert(name("m"), Arc::new(serde_json::from_value(map).unwrap()));
    let secret = json!({ "data": { "key": "aHVudGVyMg==" } });
    lookup.secrets.insert(name("s"), Arc::new(serde_json::from_value(secret).unwrap()));
    lookup
}

/// `path mode text` for each file, or what stands in the way.
fn made(volume: Value) -> Result<Vec<String>, String> {
    let (mut payloads, faults) = payloads(&pod(volume), &lookup(), &node().context());
    if let Some(fault) = faults.first() {
        return Err(fault.to_string());
    }
    let show = |(path, file): (String, PayloadFile)| {
        format!("{path} {:o} {}", file.mode, String::from_utf8_lossy(&file.bytes))
    };
    Ok(payloads.remove("v").unwrap_or_default().into_iter().map(show).collect())
}

fn files(volume: Value, want: &[&str]) {
    assert_eq!(made(volume).unwrap(), want);
}

fn fault(volume: Value, why: &str) {
    let want = format!("MountVolume.SetUp failed for volume \"v\" : {why}");
    assert_eq!(made(volume).unwrap_err(), want);
}

#[test]
fn an_object_is_a_file_for_each_key_or_those_that_are_listed() {
    files(json!({ "configMap": { "name": "m" } }), &["a 644 text", "b 644 more", "c 644 \0\u{1}"]);
    files(json!({ "secret": { "secretName": "s", "defaultMode": 256 } }), &["key 400 hunter2"]);
    let items = json!([
        { "key": "a", "path": "deep//in/./it" }, { "key": "b", "path": "own", "mode": 384 },
    ]);
    let listed = json!({ "name": "m", "items": items, "defaultMode": 292 });
    files(json!({ "configMap": listed }), &["deep/in/it 444 text", "own 600 more"]);
}

#[test]
fn what_is_missing_is_missing_only_where_it_is_not_optional() {
    let items = json!([{ "key": "none", "path": "p" }, { "key": "a", "path": "q" }]);
    fault(json!({ "configMap": { "name": "x" } }), "configmap \"x\" not found");
    fault(json!({ "secret": { "secretName": "x" } }), "secret \"x\" not found");
    fault(
        json!({ "configMap": { "name": "m", "items": items } }),
        "configmap references non-existent config key: none",
    );
    fault(
        json!({ "secret": { "secretName": "s", "items": items } }),
        "references non-existent secret key: none",
    );
    files(json!({ "configMap": { "name": "x", "optional": true } }), &[]);
    files(json!({ "secret": { "secretName": "x", "optional": true, "items": items } }), &[]);
    let both = json!({ "configMap": { "name": "m", "items": items, "optional": true } });
    files(both, &["q 644 text"]);
}

#[test]
fn fields_of_the_pod_become_files() {
    let field = |path: &str| json!({ "fieldPath": path });
    let limit = json!({ "containerName": "main", "resource": "limits.cpu", "divisor": "1m" });
    let memory = json!({ "containerName": "main", "resource": "limits.memory", "divisor": "1Mi" });
    let items = json!([
        { "path": "labels", "fieldRef": field("metadata.labels") },
        { "path": "annotations", "fieldRef": field("metadata.annotations"), "mode": 256 },
        { "path": "one", "fieldRef": field("metadata.labels['a']") },
        { "path": "name", "fieldRef": field("metadata.name") },
        { "path": "namespace", "fieldRef": field("metadata.namespace") },
        { "path": "uid", "fieldRef": field("metadata.uid") },
        { "path": "cpu", "resourceFieldRef": limit },
        { "path": "memory", "resourceFieldRef": memory },
    ]);
    let want = [
        "annotations 400 note=\"said\"",
        "cpu 644 1500",
        "labels 644 a=\"1\"\nb=\"two\\n\\\"2\\\"\"",
        "memory 644 64",
        "name 644 web",
        "namespace 644 default",
        "one 644 1",
        "uid 644 u",
    ];
    files(json!({ "downwardAPI": { "items": items } }), &want);
    let placeholder_pod = json!([{ "path": "p", "resourceFieldRef": { "containerName": "x", "resource": "limits.cpu" } }]);
    fault(json!({ "downwardAPI": { "items": placeholder_pod } }), "container x not found");
}

#[test]
fn a_projected_volume_has_the_files_of_all_its_sources_and_later_ones_win() {
    let names = json!([{ "path": "a", "fieldRef": { "fieldPath": "metadata.name" } }]);
    let sources = json!([
        { "configMap": { "name": "m" } },
        { "secret": { "name": "s" } },
        { "configMap": { "name": "x", "optional": true } },
        { "downwardAPI": { "items": names } },
    ]);
    let want = ["a 440 web", "b 440 more", "c 440 \0\u{1}", "key 440 hunter2"];
    files(json!({ "projected": { "sources": sources, "defaultMode": 288 } }), &want);
    for only_in_a_cluster in ["serviceAccountToken", "clusterTrustBundle"] {
        let source = json!([{ only_in_a_cluster: { "path": "p" } }]);
        let why = "comes from a cluster, and this node has none: take the source out";
        let volume = json!({ "projected": { "sources": source } });
        fault(volume, &format!("{only_in_a_cluster} {why}"));
    }
    let missing = json!([{ "secret": { "name": "x" } }]);
    fault(json!({ "projected": { "sources": missing } }), "secret \"x\" not found");
}

#[test]
fn other_volumes_and_unmounted_volumes_have_no_payload() {
    let of = |pod: &Pod| payloads(pod, &lookup(), &node().context());
    assert_eq!(of(&pod(json!({ "emptyDir": {} }))), (Payloads::new(), Vec::new()));
    let mut unused = pod(json!({ "configMap": { "name": "x" } }));
    unused.spec.as_mut().unwrap().containers[0].volume_mounts = None;
    assert_eq!(of(&unused), (Payloads::new(), Vec::new()));
}

#[test]
fn what_is_in_a_file_is_not_shown() {
    let (payloads, _) =
        payloads(&pod(json!({ "secret": { "secretName": "s" } })), &lookup(), &node().context());
    assert_eq!(format!("{payloads:?}"), "{\"v\": {\"key\": 7 bytes, mode 644}}");
}

#[test]
fn a_token_file_is_readable_by_the_pods_user_or_group_only() {
    let wish = |audience: &str, seconds| TokenRequestKey { audience: audience.to_owned(), seconds };
    let mut lookup = lookup();
    lookup.tokens.insert(wish("", 3607), Ok("t0ken".to_owned()));
    lookup.tokens.insert(wish("x", 600), Err("no such account".to_owned()));
    let projected = |token: Value| {
        let sources = json!([{ "serviceAccountToken": token }]);
        json!({ "projected": { "sources": sources, "defaultMode": 420 } })
    };
    let api = || projected(json!({ "path": "./token", "expirationSeconds": 3607 }));
    let context = |of_pod: Value, of_container: Value| {
        let mut pod = pod(api());
        let spec = pod.spec.as_mut().unwrap();
        spec.security_context = serde_json::from_value(of_pod).unwrap();
        spec.containers[0].security_context = serde_json::from_value(of_container).unwrap();
        pod
    };
    let user = |id: i64| json!({ "runAsUser": id });
    let mut two = context(user(1000), json!({}));
    let mut second = two.spec.as_ref().unwrap().containers[0].clone();
    second.name = "second".to_owned();
    second.security_context = serde_json::from_value(user(1001)).unwrap();
    two.spec.as_mut().unwrap().containers.push(second);
    let rows = [
        (context(json!({}), json!({})), "644 None"),
        (context(json!({ "fsGroup": 7 }), json!({})), "600 None"),
        (context(user(1000), json!({})), "600 Some(1000)"),
        (context(user(1000), user(5)), "600 Some(5)"),
        (two, "644 None"),
    ];
    for (pod, want) in rows {
        let (payloads, faults) = payloads(&pod, &lookup, &node().context());
        assert_eq!(faults, []);
        let file = &payloads["v"]["token"];
        assert_eq!(*file.bytes, b"t0ken"[..]);
        assert_eq!(format!("{:o} {:?}", file.mode, file.owner), want);
    }
    let unknown = || pod(projected(json!({ "path": "t", "expirationSeconds": 601 })));
    let (_, faults) = payloads(&unknown(), &lookup, &node().context());
    assert_eq!(faults.len(), 1, "a token that is not known keeps a pod from starting");
    lookup.tokens_later = true;
    let (later, faults) = payloads(&unknown(), &lookup, &node().context());
    assert_eq!(faults, [], "but not one that is recalled without an API server");
    assert!(later["v"]["t"].keep && later["v"]["t"].bytes.is_empty());
    let refused = pod(projected(json!({ "path": "t", "audience": "x", "expirationSeconds": 600 })));
    let (_, faults) = payloads(&refused, &lookup, &node().context());
    assert_eq!(faults[0].why.to_string(), "failed to fetch token: no such account");
}

/// A projected volume of one source.
fn of_source(source: &Value) -> Pod {
    pod(json!({ "projected": { "sources": [source], "defaultMode": 420 } }))
}

#[test]
fn trust_anchors_are_a_file_or_the_reason_why_not() {
    let source = |name: &str, optional: bool| {
        let wanted = json!({ "name": name, "path": "ca.pem", "optional": optional });
        of_source(&json!({ "clusterTrustBundle": wanted }))
    };
    let text = crate::pem::block("CERTIFICATE", b"ca");
    let bundle = json!({ "metadata": { "name": "ca" }, "spec": { "trustBundle": text } });
    let bundle = Arc::new(serde_json::from_value(bundle).unwrap());
    let with = |bundles| Lookup { trust_bundles: bundles, ..lookup() };
    let found = with(Some(Ok([("ca".to_owned(), bundle)].into())));
    let (made, faults) = payloads(&source("ca", false), &found, &node().context());
    assert_eq!((faults, &*made["v"]["ca.pem"].bytes), (vec![], text.as_bytes()));
    let (made, _) = payloads(&source("gone", true), &found, &node().context());
    assert!(made["v"]["ca.pem"].bytes.is_empty(), "an optional one is an empty file");
    let rows = [
        (found, "clustertrustbundle \"gone\" not found"),
        (with(Some(Err("forbidden".to_owned()))), "failed to fetch clustertrustbundles: forbidden"),
        (with(None), "clusterTrustBundle comes from a cluster"),
    ];
    for (lookup, why) in rows {
        let (_, faults) = payloads(&source("gone", false), &lookup, &node().context());
        assert!(faults[0].why.to_string().starts_with(why), "{:?}", faults[0]);
    }
}

#[test]
fn a_certificate_of_the_pod_is_in_the_files_that_it_names() {
    let source = || {
        let wanted = json!({
            "signerName": "acme/ca", "keyType": "ED25519", "keyPath": "tls.key",
            "certificateChainPath": "tls.crt", "credentialBundlePath": "both.pem",
        });
        of_source(&json!({ "podCertificate": wanted }))
    };
    let at = CertificateSource { volume: "v".to_owned(), index: 0 };
    let certificate =
        crate::pod_certificate::PodCertificate { key: "key\n".into(), chain: "chain\n".into() };
    let with = |found| Lookup { pod_certificates: [(at.clone(), found)].into(), ..lookup() };
    let (made, faults) = payloads(&source(), &with(Ok(certificate)), &node().context());
    assert_eq!(faults, []);
    for (path, text) in [("tls.key", "key\n"), ("tls.crt", "chain\n"), ("both.pem", "key\nchain\n")]
    {
        assert_eq!(*made["v"][path].bytes, *text.as_bytes(), "{path}");
    }
    let (_, faults) = payloads(&source(), &with(Err("denied".to_owned())), &node().context());
    assert_eq!(faults[0].why.to_string(), "failed to get the pod certificate: denied");
    let (_, faults) = payloads(&source(), &lookup(), &node().context());
    assert!(faults[0].why.to_string().starts_with("podCertificate comes from a cluster"));
    let later = Lookup { tokens_later: true, ..lookup() };
    let (made, faults) = payloads(&source(), &later, &node().context());
    assert!(faults.is_empty() && made["v"]["tls.key"].keep);
}
