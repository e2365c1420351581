//! The client against a TLS server on loopback that answers with the name of the caller.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Notify};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::super::client_service::ClientService;
use super::super::kubeconfig::ApiAccess;
use super::super::{certificate, file_stamp};
use super::authority::Authority;

/// As many as an API server lets one connection carry.
const STREAMS: u32 = 100;
const LONG: Duration = Duration::from_secs(20);

struct TlsServer {
    address: SocketAddr,
    authority: Authority,
    /// Notified when a request waits for a response that never comes.
    backoff: Arc<Notify>,
}

/// Answers `/who` with the caller's name, `/together` when so many ask at once, and `/never` never.
async fn server(alpn: &'static [u8], together: usize) -> TlsServer {
    let authority = Authority::new();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.text().as_bytes()).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let (certificate, key) = authority.server();
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let mut config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![alpn.to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (acceptor, barrier) =
        (TlsAcceptor::from(Arc::new(config)), Arc::new(Barrier::new(together)));
    let backoff = Arc::new(Notify::new());
    let waiting = Arc::clone(&backoff);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (barrier, backoff) = (Arc::clone(&barrier), Arc::clone(&waiting));
            tokio::spawn(talk(acceptor.clone(), stream, barrier, backoff, alpn));
        }
    });
    TlsServer { address, authority, backoff }
}

async fn talk(
    acceptor: TlsAcceptor,
    tcp: TcpStream,
    barrier: Arc<Barrier>,
    backoff: Arc<Notify>,
    alpn: &[u8],
) {
    let Ok(stream) = acceptor.accept(tcp).await else { return };
    let peer = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    let name = certificate::read_der(&peer).unwrap().subject.common_name;
    let service = service_fn(move |request: Request<Incoming>| {
        let (name, barrier, backoff) = (name.clone(), Arc::clone(&barrier), Arc::clone(&backoff));
        async move {
            match request.uri().path() {
                "/together" => {
                    barrier.wait().await;
                }
                "/never" => {
                    backoff.notify_one();
                    std::future::pending::<()>().await;
                }
                _ => {}
            }
            let agent = request.headers()["user-agent"].to_str().unwrap().to_owned();
            Ok::<_, Infallible>(Response::new(format!("{name} {agent}")))
        }
    });
    let io = TokioIo::new(stream);
    if alpn == b"h2" {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.max_concurrent_streams(STREAMS).serve_connection(io, service).await.ok();
    } else {
        http1::Builder::new().serve_connection(io, service).await.ok();
    }
}

impl TlsServer {
    fn identity(&self, place: &Path, node: &str) {
        let (certificate, key) = self.authority.client(node, 3600);
        fs::write(place.join("own.pem"), certificate + &key).unwrap();
    }

    async fn access(&self, place: &Path, node: &str) -> ApiAccess {
        self.identity(place, node);
        fs::write(place.join("ca.crt"), self.authority.text()).unwrap();
        let file = place.join("kubeconfig");
        let text = format!(
            "clusters: [{{ name: c, cluster: {{ server: 'https://{}', certificate-authority: ca.crt }} }}]\n\
             users: [{{ name: u, user: {{ client-certificate: own.pem, client-key: own.pem }} }}]\n\
             contexts: [{{ name: x, context: {{ cluster: c, user: u }} }}]\ncurrent-context: x\n",
            self.address
        );
        fs::write(&file, text).unwrap();
        ApiAccess::read(&file).await.unwrap()
    }
}

async fn get(client: &kube::Client, path: &str) -> Result<String, kube::Error> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    timeout(LONG, client.request_text(request)).await.unwrap()
}

#[tokio::test]
async fn a_client_keeps_working_when_the_identity_changes() {
    for alpn in [&b"h2"[..], b"http/1.1"] {
        let server = server(alpn, 1).await;
        let place = tempfile::tempdir().unwrap();
        let access = server.access(place.path(), "a").await;
        let client_service = ClientService::default();
        let client = client_service.client();
        client_service.set_unavailable("not yet");
        assert!(get(&client, "/who").await.unwrap_err().to_string().contains("not yet"));
        client_service.set_identity(&access).unwrap();
        let said = get(&client, "/who").await.unwrap();
        let want =
            format!("system:node:a kubelet/v1.36.3 (linux/{}) kubernetes/oarsman-", architecture());
        assert!(said.starts_with(&want), "{said}");
        // A request that is on its way goes on when another identity comes, until its connection is cut.
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { get(&client, "/never").await }
        });
        timeout(LONG, server.backoff.notified()).await.unwrap();
        let files = access.files();
        let seen = file_stamp::file_stamps(&files);
        server.identity(place.path(), "b");
        assert_ne!(file_stamp::file_stamps(&files), seen);
        let old = client_service.set_identity(&access).unwrap();
        assert!(get(&client, "/who").await.unwrap().starts_with("system:node:b "));
        assert!(!waiting.is_finished());
        old.cancel();
        assert!(timeout(LONG, waiting).await.unwrap().unwrap().is_err());
        assert!(get(&client, "/who").await.unwrap().starts_with("system:node:b "));
    }
}

#[tokio::test]
async fn more_requests_stay_open_than_one_connection_allows() {
    let count = 3 * usize::try_from(STREAMS).unwrap();
    let server = server(b"h2", count).await;
    let place = tempfile::tempdir().unwrap();
    let client_service = ClientService::default();
    client_service.set_identity(&server.access(place.path(), "a").await).unwrap();
    let client = client_service.client();
    let answers = join_all((0..count).map(|_| get(&client, "/together"))).await;
    assert!(answers.iter().all(Result::is_ok), "{:?}", answers.iter().find(|it| it.is_err()));
}

fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}
