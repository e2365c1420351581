//! What a hostile registry could do.

use std::time::Duration;

use super::server::{Behaviour, Puller, RegistryServer};
use crate::error::RegistryError;
use crate::proxies::ProxySettings;
use hyper::header::{AUTHORIZATION, HeaderMap};

#[tokio::test]
async fn a_registry_that_lies_about_a_layer_is_refused_and_leaves_nothing() {
    let server = RegistryServer::start(Behaviour { lies: true, ..Behaviour::default() }).await;
    let puller = Puller::new();
    let error = puller.pull(&server.image()).await.unwrap_err();
    assert!(error.to_string().contains("has the digest"), "{error}");
    assert!(puller.store.images().unwrap().is_empty());
    server.set(Behaviour::default());
    puller.pull(&server.image()).await.unwrap();
}

#[tokio::test]
async fn a_manifest_with_another_digest_than_its_name_is_refused() {
    let behaviour = Behaviour { swaps_manifests: true, ..Behaviour::default() };
    let server = RegistryServer::start(behaviour).await;
    let wanted = format!("sha256:{}", "0".repeat(64));
    let puller = Puller::new();
    let image = format!("{}/team/app@{wanted}", server.address);
    let error = puller.pull(&image).await.unwrap_err().to_string();
    assert!(
        error.contains("sent a manifest with the digest") && error.contains(&wanted),
        "{error}"
    );
    assert!(puller.store.images().unwrap().is_empty());
}

#[tokio::test]
async fn a_registry_that_trickles_is_given_up() {
    let behaviour = Behaviour { trickles: Some(Duration::from_millis(5)), ..Behaviour::default() };
    let server = RegistryServer::start(behaviour).await;
    let error = Puller::new().pull(&server.image()).await.unwrap_err();
    assert!(matches!(error, RegistryError::TooSlow { .. }), "{error:?}");
}

#[tokio::test]
async fn where_a_registry_sends_us_sees_no_credentials() {
    let storage = RegistryServer::start(Behaviour::default()).await;
    let behaviour = Behaviour {
        wants: Some("Bearer good".to_owned()),
        redirects_blobs_to: Some(format!("http://{}", storage.address)),
        ..Behaviour::default()
    };
    let server = RegistryServer::start(behaviour).await;
    let puller = Puller::new();
    let address = server.address;
    let hosts = format!("server = \"http://{address}\"\n[header]\nx-secret = \"s\"");
    puller.configure(&address.to_string(), &hosts);
    puller.pull(&server.image()).await.unwrap();
    let has_secret = |(_, headers): &(String, HeaderMap)| headers.contains_key("x-secret");
    assert!(server.requests.lock().unwrap().iter().any(has_secret), "it is for the registry");
    let requests = storage.requests.lock().unwrap();
    assert_eq!(requests.len(), 3, "the layers come from the storage");
    assert!(requests.iter().all(|(_, headers)| !headers.contains_key(AUTHORIZATION)));
    assert!(!requests.iter().any(has_secret));
}

/// The registry is somewhere else, behind a proxy: only one on this machine may send us to this machine.
#[tokio::test]
async fn a_registry_elsewhere_cannot_send_us_to_this_machine() {
    let node = RegistryServer::start(Behaviour::default()).await;
    for target in ["127.0.0.1", "169.254.169.254", "[::1]"] {
        let behaviour = Behaviour {
            redirects_blobs_to: Some(format!("http://{target}:{}", node.address.port())),
            ..Behaviour::default()
        };
        let proxy = RegistryServer::start(behaviour).await;
        let mut puller = Puller::new();
        puller.configure("registry.invalid", "server = \"http://registry.invalid\"");
        puller.settings.limits.retries = 0;
        puller.settings.proxies =
            ProxySettings { http: format!("http://{}", proxy.address), ..ProxySettings::default() };
        let error = puller.pull("registry.invalid/team/app:1").await.unwrap_err();
        assert!(error.to_string().contains("is an address of this node"), "{target}: {error}");
        assert!(proxy.paths().len() > 2, "the proxy was asked");
    }
    assert_eq!(node.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn a_redirect_in_a_circle_ends() {
    let server = RegistryServer::start(Behaviour::default()).await;
    let itself = Some(format!("http://{}", server.address));
    server.set(Behaviour { redirects_blobs_to: itself, ..Behaviour::default() });
    let error = Puller::new().pull(&server.image()).await.unwrap_err();
    assert!(error.to_string().contains("too many redirects"), "{error}");
    assert!(!error.to_string().contains("signature"), "{error}");
}
