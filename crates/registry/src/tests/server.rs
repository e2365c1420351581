//! A registry on loopback with one image, whose answers a test can spoil.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures::StreamExt;
use hyper::StatusCode;
use hyper::header::{
    AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, LOCATION, RANGE, WWW_AUTHENTICATE,
};
use oarsman_image_store::{Digest, ImageStore, ImportedImage, Platform, UnpackBounds};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::authentication::PullCredentials;
use crate::error::RegistryError;
use crate::pull::{ImagePull, PullCounters, pull_into};
use crate::settings::{RegistrySettings, TransferLimits};

pub(super) const REPOSITORY: &str = "team/app";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// More than the buffers of a connection.
pub(super) const LAYER_BYTES: usize = 300 << 10;

/// How the registry answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Behaviour {
    /// The `Authorization` header without which it refuses; with `Bearer` it names its own token server.
    pub(super) wants: Option<String>,
    /// What the token server wants in its own header or in its body.
    pub(super) token_wants: Option<String>,
    /// Each answer with a layer ends after so many bytes.
    pub(super) breaks_after: Option<usize>,
    /// It heeds no range.
    pub(super) ignores_ranges: bool,
    /// Layers are elsewhere.
    pub(super) redirects_blobs_to: Option<String>,
    /// Layers come in single bytes with such pauses between them.
    pub(super) trickles: Option<Duration>,
    /// A byte of each layer is another one.
    pub(super) lies: bool,
    /// Every manifest is that of the tag 1.
    pub(super) swaps_manifests: bool,
    /// Every answer has this status.
    pub(super) fails_with: Option<StatusCode>,
}

#[derive(Clone)]
pub(super) struct RegistryServer {
    pub(super) address: SocketAddr,
    content: Arc<BTreeMap<String, (&'static str, Bytes)>>,
    behaviour: Arc<Mutex<Behaviour>>,
    /// Each request: its path and its headers.
    pub(super) requests: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    pub(super) sent: Arc<AtomicU64>,
}

impl RegistryServer {
    pub(super) async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            content: Arc::new(content()),
            behaviour: Arc::new(Mutex::new(behaviour)),
            requests: Arc::default(),
            sent: Arc::default(),
        };
        let router = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    pub(super) fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    pub(super) fn image(&self) -> String {
        format!("{}/{REPOSITORY}:1", self.address)
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

async fn answer(State(server): State<RegistryServer>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let behaviour = server.behaviour.lock().unwrap().clone();
    server.requests.lock().unwrap().push((path.clone(), parts.headers.clone()));
    let status = |status| Response::builder().status(status).body(Body::empty()).unwrap();
    if let Some(failure) = behaviour.fails_with {
        return status(failure);
    }
    if path == "/token" {
        let body = axum::body::to_bytes(body, 10_000).await.unwrap();
        let shown = parts.headers.get(AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
        let said = [shown, &body].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        return match &behaviour.token_wants {
            Some(wanted) if !said.contains(wanted.as_str()) => status(StatusCode::UNAUTHORIZED),
            _ => Response::new(Body::from(json!({ "token": "good" }).to_string())),
        };
    }
    let shown = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some(wanted) = behaviour.wants.as_deref().filter(|wanted| Some(*wanted) != shown) {
        let realm = format!("http://{}/token", server.address);
        let challenge = match wanted.starts_with("Basic") {
            true => "Basic realm=\"r\"".to_owned(),
            false => format!("Bearer realm=\"{realm}\",service=\"s\""),
        };
        let response = Response::builder().status(StatusCode::UNAUTHORIZED);
        return response.header(WWW_AUTHENTICATE, challenge).body(Body::empty()).unwrap();
    }
    let key = path.trim_start_matches(&format!("/v2/{REPOSITORY}/"));
    let is_swapped = behaviour.swaps_manifests && key.starts_with("manifests");
    let key = if is_swapped { "manifests/1" } else { key };
    match server.content.get(key) {
        None => status(StatusCode::NOT_FOUND),
        Some((kind, bytes)) if key.starts_with("manifests") => {
            Response::builder().header(CONTENT_TYPE, *kind).body(bytes.clone().into()).unwrap()
        }
        Some((_, bytes)) => blob(&server, &behaviour, &parts.headers, &path, bytes),
    }
}

fn blob(
    server: &RegistryServer,
    behaviour: &Behaviour,
    headers: &HeaderMap,
    path: &str,
    bytes: &Bytes,
) -> Response {
    let is_layer = bytes.len() > LAYER_BYTES;
    if let Some(elsewhere) = behaviour.redirects_blobs_to.as_ref().filter(|_| is_layer) {
        let location = format!("{elsewhere}{path}?signature=secret");
        let response = Response::builder().status(StatusCode::TEMPORARY_REDIRECT);
        return response.header(LOCATION, location).body(Body::empty()).unwrap();
    }
    let range = headers.get(RANGE).and_then(|range| range.to_str().ok());
    let from = range.and_then(|it| it.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let from = from.filter(|_| !behaviour.ignores_ranges).unwrap_or(0);
    let mut rest = bytes.slice(from..).to_vec();
    if behaviour.lies && is_layer {
        rest[0] ^= 1;
    }
    let mut response = Response::builder();
    if from > 0 {
        let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
        response = response.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, range);
    }
    let ends = behaviour.breaks_after.filter(|_| is_layer).unwrap_or(usize::MAX).min(rest.len());
    let is_cut = ends < rest.len();
    let piece = if behaviour.trickles.is_some() && is_layer { 1 } else { 16 * 1024 };
    let pieces: Vec<Bytes> = rest[..ends].chunks(piece).map(Bytes::copy_from_slice).collect();
    let (sent, pause) = (Arc::clone(&server.sent), behaviour.trickles.unwrap_or_default());
    let stream = futures::stream::iter(pieces).then(move |piece| {
        sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            Ok(piece)
        }
    });
    // The server forgets what it has not sent when the body fails: the pause gives it the time to send it.
    let cut = futures::stream::iter(is_cut.then_some(())).then(|()| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(std::io::Error::other("cut"))
    });
    response.body(Body::from_stream(stream.chain(cut))).unwrap()
}

/// By what follows the repository's name.
fn content() -> BTreeMap<String, (&'static str, Bytes)> {
    let mut content = BTreeMap::new();
    let layers: Vec<Vec<u8>> = (0..3).map(layer).collect();
    let diff_ids: Vec<String> = layers.iter().map(|it| Digest::of(it).to_string()).collect();
    let Platform { os, architecture, .. } = Platform::host();
    let config = json!({ "os": os, "architecture": architecture,
        "rootfs": { "type": "layers", "diff_ids": diff_ids } });
    let config = config.to_string().into_bytes();
    let described = |bytes: &[u8]| json!({ "digest": Digest::of(bytes), "size": bytes.len() });
    let manifest = json!({ "schemaVersion": 2, "config": described(&config),
        "layers": layers.iter().map(|it| described(it)).collect::<Vec<_>>() });
    let manifest = manifest.to_string().into_bytes();
    let mut entry = described(&manifest);
    entry["platform"] = json!({ "os": os, "architecture": architecture });
    let index = json!({ "schemaVersion": 2, "manifests": [entry] }).to_string().into_bytes();
    for blob in layers.iter().chain([&config]) {
        let key = format!("blobs/{}", Digest::of(blob));
        content.insert(key, ("", Bytes::from(blob.clone())));
    }
    content.insert(format!("manifests/{}", Digest::of(&manifest)), (MANIFEST, manifest.into()));
    content.insert(format!("manifests/{}", Digest::of(&index)), (INDEX, index.clone().into()));
    content.insert("manifests/1".to_owned(), (INDEX, index.into()));
    content
}

fn layer(number: u8) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(LAYER_BYTES as u64);
    header.set_mode(0o644);
    let bytes = vec![number; LAYER_BYTES];
    archive.append_data(&mut header, format!("file{number}"), bytes.as_slice()).unwrap();
    archive.into_inner().unwrap()
}

/// A store of a test, and how it pulls.
pub(super) struct Puller {
    directory: TempDir,
    pub(super) store: ImageStore,
    pub(super) settings: RegistrySettings,
    pub(super) counters: Arc<PullCounters>,
}

impl Puller {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = ImageStore::open(&directory.path().join("store"), UnpackBounds::default());
        let limits = TransferLimits {
            stall: Duration::from_secs(10),
            window: Duration::from_millis(300),
            least_bytes: 1024,
            retry_pause: Duration::from_millis(1),
            ..TransferLimits::default()
        };
        let settings = RegistrySettings {
            hosts_directories: vec![directory.path().join("certs.d")],
            proxies: crate::ProxySettings::default(),
            limits,
        };
        Self { store: store.unwrap(), settings, counters: Arc::default(), directory }
    }

    pub(super) fn configure(&self, registry: &str, hosts: &str) {
        let directory = self.directory.path().join("certs.d").join(registry);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("hosts.toml"), hosts).unwrap();
    }

    pub(super) async fn pull(&self, image: &str) -> Result<ImportedImage, RegistryError> {
        self.pull_as(image, PullCredentials::Anonymous).await
    }

    pub(super) async fn pull_as(
        &self,
        image: &str,
        credentials: PullCredentials,
    ) -> Result<ImportedImage, RegistryError> {
        let pull = ImagePull { image: image.to_owned(), credentials, platform: Platform::host() };
        let settings = Arc::new(self.settings.clone());
        pull_into(&self.store, &pull, &settings, &self.counters).await
    }
}
