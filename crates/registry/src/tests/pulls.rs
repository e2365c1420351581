//! What real registries do.

use std::sync::atomic::Ordering;

use super::server::{Behaviour, LAYER_BYTES, Puller, RegistryServer};
use crate::authentication::PullCredentials;
use crate::error::RegistryError;
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, RANGE};

fn password() -> PullCredentials {
    PullCredentials::Password { username: "u".to_owned(), password: "p".to_owned() }
}

#[tokio::test]
async fn an_image_is_pulled_by_tag_and_by_digest_and_what_is_there_is_not_pulled_again() {
    let server = RegistryServer::start(Behaviour::default()).await;
    let puller = Puller::new();
    let pulled = puller.pull(&server.image()).await.unwrap();
    let stored = puller.store.image(&server.image()).unwrap();
    assert_eq!((stored.id, stored.layers.len()), (pulled.id, 3));
    assert_eq!(stored.digests.len(), 1);
    let (done, total) = (&puller.counters.done, &puller.counters.total);
    assert_eq!(done.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
    assert_eq!(puller.counters.unpacked.load(Ordering::Relaxed), 3);
    let layers = stored.layers.iter().filter(|it| puller.store.has_blob(&it.blob).unwrap());
    assert_eq!(layers.count(), 0, "compressed layers are not kept");
    let sent = server.sent.load(Ordering::Relaxed);
    let again = puller.pull(&stored.digests[0]).await.unwrap();
    assert_eq!(again.id, pulled.id);
    assert_eq!(server.sent.load(Ordering::Relaxed), sent, "no blob came again");
}

#[tokio::test]
async fn credentials_are_shown_as_the_registry_wants_them() {
    let basic = Some("Basic dTpw".to_owned());
    let bearer = Some("Bearer good".to_owned());
    let identity = PullCredentials::IdentityToken("id".to_owned());
    let rows = [
        (basic.clone(), None, password(), true),
        (basic.clone(), None, PullCredentials::Anonymous, false),
        (bearer.clone(), None, PullCredentials::Anonymous, true),
        (bearer.clone(), Some("Basic dTpw"), password(), true),
        (bearer.clone(), Some("Basic dTpw"), PullCredentials::Anonymous, false),
        (bearer.clone(), Some("refresh_token=id"), identity, true),
        (bearer, None, PullCredentials::RegistryToken("good".to_owned()), true),
    ];
    for (wants, token_wants, credentials, is_pulled) in rows {
        let token_wants = token_wants.map(str::to_owned);
        let row = format!("{wants:?} {token_wants:?} {credentials:?}");
        let behaviour = Behaviour { wants, token_wants, ..Behaviour::default() };
        let server = RegistryServer::start(behaviour).await;
        let outcome = Puller::new().pull_as(&server.image(), credentials).await;
        assert_eq!(outcome.is_ok(), is_pulled, "{row}: {outcome:?}");
        if let Err(error) = outcome {
            let text = error.to_string();
            assert!(text.contains(" refuses ") && !text.contains("dTpw"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_download_that_breaks_off_ten_times_goes_on_where_it_was() {
    let cut = LAYER_BYTES / 10;
    let behaviour = Behaviour { breaks_after: Some(cut), ..Behaviour::default() };
    let server = RegistryServer::start(behaviour).await;
    let puller = Puller::new();
    puller.pull(&server.image()).await.unwrap();
    let requests = server.requests.lock().unwrap();
    let ranges = requests.iter().filter(|(_, headers)| headers.contains_key(RANGE)).count();
    assert!(ranges >= 3 * 9, "{ranges}");
    drop(requests);
    let (sent, total) = (server.sent.load(Ordering::Relaxed), &puller.counters.total);
    let total = total.load(Ordering::Relaxed);
    // What the client had not read when the connection broke comes again: some buffers each time.
    assert!(sent < 2 * total, "{sent} bytes were sent for {total}");
}

#[tokio::test]
async fn the_next_pull_goes_on_with_what_the_last_one_has_left() {
    let behaviour = Behaviour { breaks_after: Some(LAYER_BYTES / 2), ..Behaviour::default() };
    let server = RegistryServer::start(behaviour).await;
    let mut puller = Puller::new();
    puller.settings.limits.retries = 0;
    let failed = puller.pull(&server.image()).await.unwrap_err();
    assert!(matches!(failed, RegistryError::GivenUp { .. }), "{failed:?}");
    assert!(puller.store.image(&server.image()).is_err(), "nothing half is visible");
    server.set(Behaviour::default());
    let before = server.sent.load(Ordering::Relaxed);
    puller.pull(&server.image()).await.unwrap();
    let sent = server.sent.load(Ordering::Relaxed) - before;
    // The layer that broke off goes on in its middle, whatever was there of the others.
    let layers = 3 * LAYER_BYTES as u64;
    assert!(sent < layers - LAYER_BYTES as u64 / 4, "{sent} bytes were sent again");
}

#[tokio::test]
async fn a_registry_that_heeds_no_range_is_read_from_the_beginning() {
    let behaviour = Behaviour { breaks_after: Some(LAYER_BYTES / 2), ..Behaviour::default() };
    let server = RegistryServer::start(behaviour).await;
    let mut puller = Puller::new();
    puller.settings.limits.retries = 0;
    puller.pull(&server.image()).await.unwrap_err();
    server.set(Behaviour { ignores_ranges: true, ..Behaviour::default() });
    puller.pull(&server.image()).await.unwrap();
}

#[tokio::test]
async fn a_mirror_comes_first_and_the_registry_when_the_mirror_fails() {
    let registry = RegistryServer::start(Behaviour::default()).await;
    let mirror = RegistryServer::start(Behaviour::default()).await;
    let puller = Puller::new();
    let hosts =
        format!("server = \"http://{}\"\n[host.\"http://{}\"]", registry.address, mirror.address);
    puller.configure("registry.example", &hosts);
    let image = "registry.example/team/app:1";
    puller.pull_as(image, password()).await.unwrap();
    assert_eq!(registry.paths(), Vec::<String>::new());
    let shown =
        mirror.requests.lock().unwrap().iter().any(|(_, it)| it.contains_key(AUTHORIZATION));
    assert!(!shown, "a mirror sees no credentials of the registry");
    mirror.set(Behaviour { fails_with: Some(StatusCode::BAD_GATEWAY), ..Behaviour::default() });
    Puller::new().pull(image).await.unwrap_err();
    let puller = Puller::new();
    puller.configure("registry.example", &hosts);
    puller.pull(image).await.unwrap();
    assert!(!registry.paths().is_empty());
}

#[tokio::test]
async fn an_image_that_no_host_has_is_an_error_that_names_them() {
    let server = RegistryServer::start(Behaviour::default()).await;
    let missing = format!("{}/team/app:2", server.address);
    let error = Puller::new().pull(&missing).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    let wanted = format!(
        "cannot pull {missing}: http://{}/v2/team/app/manifests/2 is not found: it gives no reason",
        server.address
    );
    assert_eq!(error.to_string(), wanted);
    server.set(Behaviour { fails_with: Some(StatusCode::BAD_GATEWAY), ..Behaviour::default() });
    assert!(Puller::new().pull(&missing).await.unwrap_err().is_unavailable());
}
