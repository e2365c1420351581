//! Trust bundles and certificates of pods.

use oarsman_core::ids::PodUid;
use oarsman_core::pem;
use oarsman_core::pod_certificate::CertificateSource;
use oarsman_core::trust_bundle::TrustBundleName;

use super::super::{PodCertificateStates, ProjectionGates};
use super::*;

const BUNDLES: &str = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1beta1/podcertificaterequests";

fn with_gates(server: &FakeApiServer) -> ObjectManager {
    let projections = ProjectionGates { trust_bundles: true, pod_certificates: true };
    objects_with(server, ObjectSettings { projections, ..ObjectSettings::default() })
}

fn with_source(uid: &str, source: &Value) -> Pod {
    pod(uid, &json!([{ "name": "v", "projected": { "sources": [source] } }]))
}

fn with_bundle(uid: &str) -> Pod {
    let source = json!({ "path": "ca.pem", "signerName": "acme/ca", "labelSelector": {} });
    with_source(uid, &json!({ "clusterTrustBundle": source }))
}

fn bundle(name: &str, signer: &str) -> Value {
    let spec = json!({ "signerName": signer, "trustBundle": pem::block("CERTIFICATE", b"ca") });
    json!({ "metadata": { "name": name }, "spec": spec })
}

#[tokio::test(start_paused = true)]
async fn trust_bundles_are_watched_for_the_pods_that_have_them() {
    let server = FakeApiServer::default();
    let objects = with_gates(&server);
    let plain = objects.lookup(&pod("p", &json!([]))).await.unwrap();
    assert_eq!(plain.trust_bundles, None);
    assert!(!server.log().iter().any(|line| line.contains("trustbundles")), "none has one");
    server.put(BUNDLES, bundle("acme:ca:1", "acme/ca"));
    server.put(BUNDLES, bundle("other:ca:1", "other/ca"));
    let names = async || {
        let found = objects.lookup(&with_bundle("a")).await.unwrap().trust_bundles;
        found.unwrap().unwrap().into_keys().collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["acme:ca:1"]);
    let mut changes = objects.changes();
    server.put(BUNDLES, bundle("acme:ca:2", "acme/ca"));
    let (name, signer) = ("acme:ca:2".to_owned(), "acme/ca".to_owned());
    let change = ObjectChange::TrustBundle(TrustBundleName { name, signer });
    assert_eq!(told(&mut changes).await, std::slice::from_ref(&change));
    assert!(change.concerns(&with_bundle("a")));
    assert_eq!(names().await, ["acme:ca:1", "acme:ca:2"]);
    server.remove(BUNDLES, "acme:ca:2");
    assert_eq!(told(&mut changes).await, [change]);
    assert_eq!(names().await, ["acme:ca:1"]);
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_or_the_right_the_pod_is_told_why() {
    let server = FakeApiServer::default();
    let off = objects(&server);
    let found = off.lookup(&with_bundle("a")).await.unwrap();
    let why = found.trust_bundles.unwrap().unwrap_err();
    assert!(why.contains("ClusterTrustBundleProjection is off"), "{why}");
    let found = off.lookup(&with_certificate("a", "ED25519")).await.unwrap();
    let why = found.pod_certificates[&source()].clone().unwrap_err();
    assert!(why.contains("PodCertificateRequest is off"), "{why}");
    let objects = with_gates(&server);
    objects.lookup(&pod("p", &json!([]))).await.unwrap();
    server.fail_with(403);
    let found = objects.lookup(&with_bundle("a")).await.unwrap();
    assert_eq!(found.trust_bundles, Some(Err("the answer is 403".to_owned())));
}

fn source() -> CertificateSource {
    CertificateSource { volume: "v".to_owned(), index: 0 }
}

fn with_certificate(uid: &str, key_type: &str) -> Pod {
    let annotations = json!({ "acme/zone": "a" });
    let source = json!({
        "signerName": "acme/ca", "keyType": key_type, "credentialBundlePath": "bundle.pem",
        "maxExpirationSeconds": 7200, "userAnnotations": annotations,
    });
    with_source(uid, &json!({ "podCertificate": source }))
}

/// A server with the node and the account that requests name.
fn server_with_identities() -> FakeApiServer {
    let server = FakeApiServer::default();
    server.put("/api/v1/nodes", json!({ "metadata": { "name": "n1", "uid": "node-1" } }));
    let account = json!({ "metadata": { "name": "default", "namespace": "ns", "uid": "sa-1" } });
    server.put("/api/v1/namespaces/ns/serviceaccounts", account);
    server
}

/// Answers the newest request, which must be the only one without an answer.
fn decide(server: &FakeApiServer, status: &Value) -> Value {
    let pending: Vec<Value> =
        server.objects(REQUESTS).into_iter().filter(|one| one["status"].is_null()).collect();
    let [request] = &pending[..] else { panic!("one request is pending: {pending:?}") };
    let mut decided = request.clone();
    decided["status"] = status.clone();
    server.put(REQUESTS, decided);
    request.clone()
}

fn issued(leaf: &[u8], refresh_seconds: i64) -> Value {
    let after = |seconds: i64| {
        (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).to_string()
    };
    json!({
        "certificateChain": pem::block("CERTIFICATE", leaf),
        "beginRefreshAt": after(refresh_seconds), "notAfter": after(2 * refresh_seconds),
    })
}

async fn certificate(objects: &ObjectManager, pod: &Pod) -> Result<(String, String), String> {
    let found = objects.lookup(pod).await.unwrap().pod_certificates[&source()].clone();
    found.map(|found| (found.key.to_string(), found.chain.to_string()))
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_requested_issued_and_refreshed_with_a_new_key() {
    let server = server_with_identities();
    let (objects, pod) = (with_gates(&server), with_certificate("a", "ECDSAP256"));
    let mut changes = objects.changes();
    let waiting = certificate(&objects, &pod).await.unwrap_err();
    assert!(waiting.contains("has not issued"), "{waiting}");
    let request = decide(&server, &issued(b"first", 3600));
    let spec = &request["spec"];
    for (field, value) in [
        ("signerName", "acme/ca"),
        ("nodeName", "n1"),
        ("nodeUID", "node-1"),
        ("podName", "web-a"),
        ("podUID", "a"),
        ("serviceAccountName", "default"),
        ("serviceAccountUID", "sa-1"),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    assert_eq!(spec["maxExpirationSeconds"], 7200);
    assert_eq!(spec["unverifiedUserAnnotations"], json!({ "acme/zone": "a" }));
    assert_eq!(request["metadata"]["ownerReferences"][0]["uid"], "a");
    assert_eq!(told(&mut changes).await, [ObjectChange::PodCertificate(PodUid::from("a"))]);
    let (first_key, chain) = certificate(&objects, &pod).await.unwrap();
    assert_eq!(chain, pem::block("CERTIFICATE", b"first"));
    seconds(3500).await;
    assert_eq!(server.objects(REQUESTS).len(), 1, "it is not time yet");
    seconds(110).await;
    decide(&server, &issued(b"second", 3600));
    assert_eq!(told(&mut changes).await, [ObjectChange::PodCertificate(PodUid::from("a"))]);
    let (second_key, chain) = certificate(&objects, &pod).await.unwrap();
    assert_eq!(chain, pem::block("CERTIFICATE", b"second"));
    assert_ne!(first_key, second_key);
    objects.forget(&PodUid::from("a"));
    seconds(7200).await;
    assert_eq!(server.objects(REQUESTS).len(), 2, "a pod that has ended needs none");
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_final_and_the_old_certificate_counts_until_it_expires() {
    let server = server_with_identities();
    let states = PodCertificateStates::default();
    let projections = ProjectionGates { trust_bundles: true, pod_certificates: true };
    let certificate_states = states.clone();
    let settings = ObjectSettings { projections, certificate_states, ..ObjectSettings::default() };
    let (objects, pod) = (objects_with(&server, settings), with_certificate("a", "ED25519"));
    let counts = || states.counts(jiff::Timestamp::now()).into_iter().collect::<Vec<_>>();
    let one = |state: &'static str| vec![(("acme/ca".to_owned(), state), 1)];
    certificate(&objects, &pod).await.unwrap_err();
    assert_eq!(counts(), one("not_yet_issued"));
    decide(&server, &issued(b"first", 3600));
    run_ready_tasks().await;
    assert_eq!(counts(), one("fresh"));
    let first = certificate(&objects, &pod).await.unwrap();
    seconds(3610).await;
    let condition = json!({ "type": "Denied", "status": "True", "reason": "Policy", "message": "no", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    decide(&server, &json!({ "conditions": [condition] }));
    run_ready_tasks().await;
    assert_eq!(certificate(&objects, &pod).await, Ok(first));
    assert_eq!(counts(), one("denied"));
    seconds(3600).await;
    let why = certificate(&objects, &pod).await.unwrap_err();
    assert!(why.contains("denied the request: Policy: no"), "{why}");
    assert_eq!(server.objects(REQUESTS).len(), 2, "it is not asked again");
    let why = certificate(&objects, &with_certificate("b", "RSA4096")).await.unwrap_err();
    assert!(why.contains("use ECDSAP256, ECDSAP384 or ED25519"), "{why}");
    objects.forget(&PodUid::from("a"));
    assert_eq!(counts(), one("failed"), "that of the pod that cannot have its key");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_deleted_is_made_again() {
    let server = server_with_identities();
    let (objects, pod) = (with_gates(&server), with_certificate("a", "ED25519"));
    certificate(&objects, &pod).await.unwrap_err();
    let name = server.objects(REQUESTS)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    server.remove(REQUESTS, &name);
    seconds(30).await;
    decide(&server, &issued(b"again", 3600));
    run_ready_tasks().await;
    assert!(certificate(&objects, &pod).await.is_ok());
}
