//! A signer whose certificates are to be renewed as soon as they are there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::http::{Method, Request, Response};
use k8s_openapi::api::core::v1::NodeAddress;
use kube::Client;
use kube::client::Body;
use oarsman_clock::SystemClock;
use oarsman_sync::Guarded;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tower::BoxError;

use super::super::{ServingCertificateSource, serving};
use super::authority::Authority;

/// When certificates were asked for.
type RequestTimes = Arc<Guarded<Vec<Instant>>>;

/// An API server that signs every request for the key that waits in the directory.
fn signer(cert_dir: PathBuf, times: &RequestTimes) -> Client {
    let (authority, times) = (Arc::new(Authority::new()), Arc::clone(times));
    let service = tower::service_fn(move |request: Request<Body>| {
        if request.method() == Method::POST {
            times.lock().push(Instant::now());
        }
        let body = signed(&authority, &cert_dir).to_string().into_bytes();
        async move { Ok::<_, BoxError>(Response::new(Body::from(body))) }
    });
    Client::new(service, "default")
}

fn signed(authority: &Authority, cert_dir: &Path) -> Value {
    let key = fs::read_to_string(cert_dir.join("kubelet-server.key.tmp")).unwrap();
    let certificate = STANDARD.encode(authority.expiring_server("a", &key));
    json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": { "name": "csr" },
        "spec": { "request": "", "signerName": "kubernetes.io/kubelet-serving" },
        "status": {
            "certificate": certificate,
            "conditions": [{ "type": "Approved", "status": "True" }],
        },
    })
}

/// Row S10 of docs/security.md.
#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_due_at_once_is_asked_for_less_and_less_often() {
    let place = tempfile::tempdir().unwrap();
    let times = RequestTimes::default();
    let address = NodeAddress { address: "127.0.0.1".into(), type_: "InternalIP".into() };
    let origin = ServingCertificateSource::Cluster {
        cert_dir: place.path().to_owned(),
        node: "a".to_owned(),
        addresses: Box::new(move || vec![address.clone()]),
        client: signer(place.path().to_owned(), &times),
    };
    let (_, mut manager) = serving(origin, Arc::new(SystemClock::start())).unwrap();
    let hour = Duration::from_secs(60 * 60);
    assert!(timeout(4 * hour, manager.run()).await.is_err());
    let times = times.lock();
    let waits: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs() / 60).collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
}
