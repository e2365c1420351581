//! The servers over loopback, with real TLS.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use oarsman_clock::SystemClock;
use oarsman_cluster::credentials::{ServingCertificateSource, serving};
use oarsman_cluster::review::User;
use oarsman_core::zpages::StatusFacts;
use oarsman_cri::{Deadlines, RemoteRuntime};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::sync::CancellationToken;

use super::*;

mod access_table;
mod fake_host;
mod hostile_chains;
mod hostile_clients;
mod http2;
mod log_readers;
mod metrics;
mod node_endpoints;
mod pod_lists;
mod server_thread;

pub(crate) use fake_host::FakeHost;
use fake_host::FakeMetrics;

const LONG: Duration = Duration::from_secs(20);

/// An authority that signs clients' certificates.
struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

impl TestAuthority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn client(&self, name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        (signed.der().clone(), key)
    }
}

/// Knows one token, and allows only its user to read pods; counts its calls.
#[derive(Default)]
struct FakeReviewer {
    asked: AtomicUsize,
}

#[async_trait]
impl Reviewer for FakeReviewer {
    async fn review_token(&self, token: &str) -> oarsman_cluster::Result<Option<User>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let known = User { name: "ann".to_owned(), ..User::default() };
        Ok((token == "secret").then_some(known))
    }

    async fn review_access(
        &self,
        user: &User,
        verb: &str,
        subresource: &str,
    ) -> oarsman_cluster::Result<bool> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let may = [("ann", "get", "pods"), ("api", "get", "proxy"), ("exec", "create", "proxy")];
        Ok(may.contains(&(user.name.as_str(), verb, subresource)))
    }
}

struct ServerFixture {
    directory: TempDir,
    health: SocketAddr,
    secure: SocketAddr,
    fake_reviewer: Arc<FakeReviewer>,
}

async fn serve(
    node: impl FnOnce(&Path) -> Arc<FakeHost>,
    authority: &TestAuthority,
    debugging: bool,
) -> ServerFixture {
    serve_with_health_at("127.0.0.1:0".parse().unwrap(), node, authority, debugging).await
}

async fn serve_with_health_at(
    health: SocketAddr,
    node: impl FnOnce(&Path) -> Arc<FakeHost>,
    authority: &TestAuthority,
    debugging: bool,
) -> ServerFixture {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), health, authority, debugging);
    let origin = ServingCertificateSource::SelfSigned {
        cert_dir: directory.path().join("pki"),
        host: "localhost".to_owned(),
    };
    let (certificate, _) = serving(origin, clock()).unwrap();
    let fake_reviewer = Arc::new(FakeReviewer::default());
    let source = node(directory.path());
    let reviewer: Arc<dyn Reviewer> = Arc::clone(&fake_reviewer) as _;
    let (certificate, panics) = (Arc::new(certificate), TaskPanics::default());
    let opened =
        open(settings, sources(source), Some(reviewer), certificate, clock(), panics).await;
    let mut servers = opened.unwrap();
    // What blocks a thread of the server would block the test.
    servers.thread = None;
    let addresses = servers.addresses();
    tokio::spawn(servers.run(CancellationToken::new()));
    let [health, secure] =
        if let [secure] = addresses[..] { [health, secure] } else { [addresses[0], addresses[1]] };
    ServerFixture { directory, health, secure, fake_reviewer }
}

fn settings(
    directory: &Path,
    health: SocketAddr,
    authority: &TestAuthority,
    debugging: bool,
) -> ServerSettings {
    let client_ca = directory.join("ca.crt");
    fs::write(&client_ca, authority.0.pem()).unwrap();
    ServerSettings {
        secure: Some("127.0.0.1:0".parse().unwrap()),
        read_only: None,
        health: Some(health),
        authentication: AuthenticationSettings {
            client_ca: Some(client_ca),
            tokens: Some(LONG),
            anonymous: false,
        },
        authorization: AuthorizationSettings::Webhook { allowed: LONG, denied: LONG },
        encryption: TlsSettings::default(),
        debugging,
        configuration: json!({ "port": 10250 }),
        node_endpoints: node_endpoints(directory),
    }
}

/// All of them.
fn node_endpoints(directory: &Path) -> NodeEndpointSettings {
    NodeEndpointSettings {
        node_logs: Some(NodeLogSettings { directory: directory.to_owned(), query: true }),
        flags: Some([("v".to_owned(), "2".to_owned())].into()),
        status: Some(StatusFacts {
            started: "2026-01-01T00:00:00Z".parse().unwrap(),
            rust_version: "1".to_owned(),
            binary_version: "2".to_owned(),
            emulation_version: "3".to_owned(),
        }),
        checkpoint_root: Some(directory.to_owned()),
        command_line: Some(vec!["kubelet".to_owned(), "--v=2".to_owned()]),
        debug_flags: true,
    }
}

fn sources(host: Arc<dyn HostInterface>) -> ServerSources {
    ServerSources { host, streaming: streaming(), metrics: Arc::new(FakeMetrics) }
}

/// No pod has a container, and no runtime answers.
fn streaming() -> Arc<StreamingService> {
    let runtime = RemoteRuntime::new("unix:///nonexistent", None, Deadlines::default()).unwrap();
    StreamingService::new(Arc::new(|_, _| None), Arc::new(runtime), LONG)
}

/// What endpoints answer from that are asked without a server.
pub(crate) fn endpoint_state(host: Arc<dyn HostInterface>) -> EndpointState {
    EndpointState {
        host,
        clock: clock(),
        configuration: json!({}),
        log_limits: LogLimits::new(TaskPanics::default()),
        list_limit: ListLimit::default(),
        metrics: ServerMetrics::new(Arc::new(FakeMetrics)),
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::start())
}

impl ServerFixture {
    /// Asks the health port.
    async fn health(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.health).await.unwrap();
        send(&mut stream, path, None).await;
        let mut answer = String::new();
        timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        parts(&answer)
    }

    /// Sends a request over TLS, and reads the response to its end.
    async fn ask(
        &self,
        who: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
        path: &str,
        token: Option<&str>,
    ) -> (u16, String) {
        let mut stream = self.connect(who).await;
        send(&mut stream, path, token).await;
        let mut answer = Vec::new();
        timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        parts(&String::from_utf8(answer).unwrap())
    }

    async fn connect(
        &self,
        who: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    ) -> tokio_rustls::client::TlsStream<TcpStream> {
        self.connect_with(who.map(|(certificate, key)| (vec![certificate], key))).await
    }

    async fn connect_with(
        &self,
        who: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    ) -> tokio_rustls::client::TlsStream<TcpStream> {
        self.connect_by(who, &[]).await
    }

    /// Offers these protocols.
    async fn connect_by(
        &self,
        who: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
        protocols: &[&[u8]],
    ) -> tokio_rustls::client::TlsStream<TcpStream> {
        let own = fs::read(self.directory.path().join("pki/kubelet.crt")).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&own).unwrap()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let mut config = match who {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let tcp = TcpStream::connect(self.secure).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
    }
}

async fn send(stream: &mut (impl AsyncWriteExt + Unpin), path: &str, token: Option<&str>) {
    let token = token.map(|it| format!("Authorization: Bearer {it}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{token}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// The status and the body; chunks of the body are joined.
fn parts(answer: &str) -> (u16, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return (status, body.to_owned());
    }
    let (mut rest, mut joined) = (body, String::new());
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        joined.push_str(&tail[..size]);
        rest = tail[size..].trim_start_matches("\r\n");
    }
    (status, joined)
}

fn running(logs: &Path) -> Arc<FakeHost> {
    fs::write(
        logs.join("0.log"),
        "2026-01-01T00:00:01Z stdout F one\n2026-01-01T00:00:02Z stderr F two\n",
    )
    .unwrap();
    FakeHost::with_state(logs, &json!({ "running": {} }))
}

fn ended(logs: &Path) -> Arc<FakeHost> {
    running(logs);
    FakeHost::with_state(logs, &json!({ "terminated": { "exitCode": 0 } }))
}

#[tokio::test]
async fn health_needs_no_authentication() {
    let fixture = serve(ended, &TestAuthority::new(), true).await;
    let rows = [
        ("/healthz", 200, "ok"),
        ("/healthz/ping", 200, "ok"),
        ("/healthz/log", 200, "ok"),
        ("/healthz/syncloop", 200, "ok"),
        ("/healthz/other", 404, ""),
        ("/pods", 404, ""),
    ];
    for (path, status, body) in rows {
        assert_eq!(fixture.health(path).await, (status, body.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn health_tells_that_the_sync_loop_is_stuck() {
    let stuck = |logs: &Path| {
        let host = ended(logs);
        host.is_stuck.store(true, Ordering::SeqCst);
        host
    };
    let authority = TestAuthority::new();
    let fixture = serve(stuck, &authority, true).await;
    let whole =
        "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n";
    let rows = [
        ("/healthz", 500, whole),
        ("/healthz?verbose&exclude=log", 500, &whole.replace("log ok", "log excluded: ok")),
        ("/healthz?exclude=syncloop", 200, "ok"),
        ("/healthz/ping", 200, "ok"),
        ("/healthz/syncloop", 500, "internal server error: it does not run\n"),
    ];
    for (path, status, body) in rows {
        assert_eq!(fixture.health(path).await, (status, body.to_owned()), "{path}");
        let secure = fixture.ask(Some(authority.client("api")), path, None).await;
        assert_eq!(secure, (status, body.to_owned()), "{path} over HTTPS");
    }
}

#[tokio::test]
async fn a_health_port_that_another_user_holds_keeps_https_from_no_client() {
    let authority = TestAuthority::new();
    let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let health = held.local_addr().unwrap();
    let fixture = serve_with_health_at(health, ended, &authority, true).await;
    assert_eq!(fixture.ask(Some(authority.client("api")), "/healthz", None).await.0, 200);
    drop(held);
    let answered = async {
        loop {
            if let Ok(mut stream) = TcpStream::connect(health).await {
                send(&mut stream, "/healthz", None).await;
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                return parts(&answer).0;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert_eq!(timeout(LONG, answered).await.unwrap(), 200, "once it is free");
}

#[tokio::test]
async fn certificates_tokens_and_anonymous_requests_are_distinguished() {
    let (authority, stranger) = (TestAuthority::new(), TestAuthority::new());
    let fixture = serve(ended, &authority, true).await;
    let api = || Some(authority.client("api"));
    let forbidden =
        "Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[configz proxy])";
    let rows = [
        (None, "/pods", None, 401, "Unauthorized"),
        (None, "/pods", Some("wrong"), 401, "Unauthorized"),
        (Some(stranger.client("api")), "/pods", None, 401, "Unauthorized"),
        (None, "/pods", Some("secret"), 200, "\"kind\":\"PodList\""),
        (None, "/configz", Some("secret"), 403, forbidden),
        (
            api(),
            "/configz",
            None,
            200,
            "{\"kubeletconfig\":{\"apiVersion\":\"kubelet.config.k8s.io/v1beta1\"",
        ),
        (api(), "/runningpods/", None, 200, "\"items\":[]"),
        (api(), "/healthz", None, 200, "ok"),
        // A WebSocket begins with a GET, and who may read may not execute by it.
        (api(), "/exec/default/web/c", None, 403, "verb=create, resource=nodes"),
    ];
    for (who, path, token, status, said) in rows {
        let answer = fixture.ask(who, path, token).await;
        assert!(answer.0 == status && answer.1.contains(said), "{path} {token:?}: {answer:?}");
    }
    // Cached reviews and decisions are not asked for again.
    let asked = fixture.fake_reviewer.asked.load(Ordering::SeqCst);
    assert_eq!(fixture.ask(None, "/pods", Some("secret")).await.0, 200);
    assert_eq!(fixture.fake_reviewer.asked.load(Ordering::SeqCst), asked);
}

#[tokio::test]
async fn a_replaced_authority_file_is_used_at_once() {
    let (first, second) = (TestAuthority::new(), TestAuthority::new());
    let fixture = serve(ended, &first, true).await;
    assert_eq!(fixture.ask(Some(second.client("api")), "/pods", None).await.0, 401);
    fs::write(fixture.directory.path().join("ca.crt"), second.0.pem() + "\n").unwrap();
    assert_eq!(fixture.ask(Some(second.client("api")), "/pods", None).await.0, 200);
    assert_eq!(fixture.ask(Some(first.client("api")), "/pods", None).await.0, 401);
}

#[tokio::test]
async fn logs_are_sent_as_asked_for() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let rows = [
        ("web/c", 200, "one\ntwo\n"),
        ("web/c?tailLines=1", 200, "two\n"),
        ("web/c?timestamps=true&tailLines=1", 200, "2026-01-01T00:00:02Z two\n"),
        ("web/c?limitBytes=5", 200, "one\nt"),
        ("web/c?sinceTime=2026-01-01T00%3A00%3A02Z", 200, "two\n"),
        ("web/c?follow=true", 200, "one\ntwo\n"),
        ("web/c?tailLines=-1", 422, "tailLines=\"-1\" is none; write a number of at least 0"),
        (
            "web/c?previous=true",
            400,
            "previous terminated container \"c\" in pod \"web\" not found",
        ),
        ("web/x", 404, "container \"x\" not found in pod \"web\""),
        ("other/c", 404, "pod \"other\" does not exist"),
    ];
    for (what, status, said) in rows {
        let path = format!("/containerLogs/default/{what}");
        let answer = fixture.ask(Some(authority.client("api")), &path, None).await;
        assert_eq!(answer, (status, said.to_owned()), "{what}");
    }
}

#[tokio::test]
async fn a_log_is_followed_until_its_container_ends_and_no_wake_up_lists_the_pods() {
    let authority = TestAuthority::new();
    let mut node = None;
    let fixture = serve(
        |logs| {
            let made = running(logs);
            node = Some(Arc::clone(&made));
            made
        },
        &authority,
        true,
    )
    .await;
    let node = node.unwrap();
    let mut stream = fixture.connect(Some(authority.client("api"))).await;
    send(&mut stream, "/containerLogs/default/web/c?follow=true", None).await;
    let mut answer = String::new();
    read_until(&mut stream, &mut answer, "two\n").await;
    let log = fixture.directory.path().join("0.log");
    let mut file = fs::File::options().append(true).open(log).unwrap();
    io::Write::write_all(&mut file, b"2026-01-01T00:00:03Z stdout F three\n").unwrap();
    read_until(&mut stream, &mut answer, "three\n").await;
    node.set_state("web", &json!({ "terminated": { "exitCode": 0 } }));
    timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert_eq!(parts(&answer), (200, "one\ntwo\nthree\n".to_owned()));
    // One lookup when the log is opened, and one at each wake-up: the first, that of the end, and that of the line unless it came
    // while the first was read.
    let (lists, lookups) = node.queries();
    assert_eq!(lists, 0);
    assert!(lookups >= 3, "{lookups}");
}

async fn read_until(stream: &mut (impl AsyncReadExt + Unpin), answer: &mut String, end: &str) {
    let mut buffer = [0; 4096];
    while !answer.contains(end) {
        let read = timeout(LONG, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(read > 0, "{answer}");
        answer.push_str(str::from_utf8(&buffer[..read]).unwrap());
    }
}

#[tokio::test]
async fn disabled_endpoints_say_that_they_are_disabled() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, false).await;
    for path in ["/configz", "/containerLogs/default/web/c", "/runningpods/"] {
        let answer = fixture.ask(Some(authority.client("api")), path, None).await;
        assert_eq!(answer, (405, "Debug endpoints are disabled.".to_owned()), "{path}");
    }
    assert_eq!(fixture.ask(Some(authority.client("api")), "/pods", None).await.0, 200);
}
