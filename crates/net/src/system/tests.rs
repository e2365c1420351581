//! Asking real servers on this machine.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap as AxumHeaders;
use axum::routing::get;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::Trust;

/// Longer than any answer on this machine takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with its test.
struct TestServer {
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Pages that say what they were asked.
fn echo_routes() -> Router {
    let said = async |headers: AxumHeaders| {
        let said = |name: &str| headers.get(name).map(|v| v.to_str().unwrap().to_owned());
        format!("{:?} {:?}", said("host").map(|h| h.replace(char::is_numeric, "")), said("x-mine"))
    };
    let moved = async || (axum::http::StatusCode::FOUND, [("location", "/said")], "elsewhere");
    let five = async || "12345";
    let parts = async || {
        axum::body::Body::from_stream(futures::stream::iter(
            ["123", "45", "67"].map(Ok::<_, io::Error>),
        ))
    };
    Router::new()
        .route("/said", get(said))
        .route("/moved", get(moved))
        .route("/five", get(five))
        .route("/parts", get(parts))
}

async fn serve() -> TestServer {
    let (listener, port) = listen().await;
    let task = tokio::spawn(async move { axum::serve(listener, echo_routes()).await.unwrap() });
    TestServer { port, task }
}

/// A server that sends the same response after the first bytes of each client, and closes.
async fn serve_bytes(words: &'static [u8]) -> TestServer {
    let (listener, port) = listen().await;
    let task = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut heard = [0; 1024];
            assert!(socket.read(&mut heard).await.is_ok());
            socket.write_all(words).await.ok();
            socket.shutdown().await.ok();
        }
    });
    TestServer { port, task }
}

/// A server with a self-signed certificate.
async fn self_signed() -> TestServer {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, port) = listen().await;
    let task = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let mut heard = [0; 1024];
            assert!(stream.read(&mut heard).await.is_ok());
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret").await.ok();
            stream.shutdown().await.ok();
        }
    });
    TestServer { port, task }
}

fn request(scheme: Scheme, port: u16, path: &str) -> HttpGet {
    HttpGet {
        scheme,
        host: "127.0.0.1".to_owned(),
        port,
        path_and_query: path.to_owned(),
        headers: Vec::new(),
        timeout: PATIENCE,
        body_limit: 100,
        trust: Trust::AnyCertificate,
    }
}

/// Status, body and whether that was all; or what went wrong, with the port taken out.
async fn fetch(request: &HttpGet) -> String {
    match SystemNetwork.get(request).await {
        Ok(HttpResponse { status, body, is_complete: whole, .. }) => {
            format!("{status} {} {whole}", String::from_utf8(body).unwrap())
        }
        Err(error) => error.to_string().replace(&format!(":{}", request.port), ""),
    }
}

#[tokio::test]
async fn an_answer_of_any_status_is_an_answer() {
    let server = serve().await;
    let rows =
        [("/five?a=b", "200 12345 true"), ("/none", "404  true"), ("/moved", "302 elsewhere true")];
    for (path, want) in rows {
        assert_eq!(fetch(&request(Scheme::Http, server.port, path)).await, want, "{path}");
    }
    let answer = SystemNetwork.get(&request(Scheme::Http, server.port, "/moved")).await.unwrap();
    let location = ("location".to_owned(), "/said".to_owned());
    assert!(answer.headers.contains(&location), "{:?}", answer.headers);
}

#[tokio::test]
async fn the_host_is_the_one_of_the_url_unless_another_is_given() {
    let server = serve().await;
    let plain = request(Scheme::Http, server.port, "/said");
    assert_eq!(fetch(&plain).await, r#"200 Some("...:") None true"#);
    let headers = vec![header("Host", "web"), header("X-Mine", "1")];
    let given = HttpGet { headers, ..plain };
    assert_eq!(fetch(&given).await, r#"200 Some("web") Some("1") true"#);
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn the_default_port_is_omitted_from_the_host_header() {
    let rows = [
        (Scheme::Http, 80, "127.0.0.1"),
        (Scheme::Http, 443, "127.0.0.1:443"),
        (Scheme::Https, 443, "127.0.0.1"),
        (Scheme::Https, 8443, "127.0.0.1:8443"),
    ];
    for (scheme, port, want) in rows {
        assert_eq!(host_header(&request(scheme, port, "/")), want, "{scheme} {port}");
    }
}

#[tokio::test]
async fn no_more_of_a_body_is_read_than_is_wanted() {
    let server = serve().await;
    let rows = [
        ("/five", 5, "200 12345 true"),
        ("/five", 4, "200 1234 false"),
        ("/five", 0, "200  false"),
        ("/parts", 7, "200 1234567 true"),
        ("/parts", 4, "200 1234 false"),
        ("/parts", 3, "200 123 false"),
    ];
    for (path, body_limit, want) in rows {
        let asked = HttpGet { body_limit, ..request(Scheme::Http, server.port, path) };
        assert_eq!(fetch(&asked).await, want, "{path} {body_limit}");
    }
}

#[tokio::test]
async fn a_body_limit_of_zero_does_not_wait_for_the_body() {
    let server = serve_bytes(b"HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\nhalf").await;
    let asked = HttpGet { body_limit: 0, ..request(Scheme::Http, server.port, "/") };
    assert_eq!(fetch(&asked).await, "500  false");
}

#[tokio::test]
async fn a_self_signed_certificate_is_accepted_only_without_verification() {
    let server = self_signed().await;
    let unchecked = request(Scheme::Https, server.port, "/");
    assert_eq!(fetch(&unchecked).await, "200 secret true");
    let checked = HttpGet { trust: Trust::System, ..unchecked };
    let said = fetch(&checked).await;
    assert!(said.starts_with("no TLS with https://127.0.0.1/: "), "{said}");
}

#[tokio::test]
async fn a_server_without_tls_is_distinguished_from_an_invalid_response() {
    let (plain, nonsense) = (serve().await, serve_bytes(b"SSH-2.0-OpenSSH_9.2\r\n").await);
    let said = fetch(&request(Scheme::Https, plain.port, "/five")).await;
    let want = "https://127.0.0.1/five answered in plain HTTP: ask for http instead of https";
    assert_eq!(said, want);
    let said = fetch(&request(Scheme::Https, nonsense.port, "/")).await;
    assert!(said.starts_with("no TLS with https://127.0.0.1/: "), "{said}");
    let said = SystemNetwork.get(&request(Scheme::Http, nonsense.port, "/")).await.unwrap_err();
    assert!(matches!(said, NetworkError::Malformed { .. }), "{said}");
}

#[tokio::test]
async fn a_refused_and_a_broken_connection_are_unreachable() {
    let (listener, free) = listen().await;
    drop(listener);
    let said = fetch(&request(Scheme::Http, free, "/a?token=secret")).await;
    assert!(said.starts_with("cannot reach http://127.0.0.1/a: Connection refused"), "{said}");
    let half = serve_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await;
    let mute = serve_bytes(b"").await;
    for server in [half, mute] {
        let said = SystemNetwork.get(&request(Scheme::Http, server.port, "/")).await.unwrap_err();
        assert!(matches!(said, NetworkError::Unreachable { .. }), "{said}");
    }
}

#[tokio::test]
async fn a_request_without_a_response_times_out() {
    let (listener, port) = listen().await;
    for scheme in [Scheme::Http, Scheme::Https] {
        let timeout = Duration::from_millis(50);
        let said = fetch(&HttpGet { timeout, ..request(scheme, port, "/") }).await;
        assert_eq!(said, format!("no answer from {scheme}://127.0.0.1/ within 50ms"));
    }
    drop(listener);
}

#[tokio::test]
async fn an_invalid_request_is_refused_without_showing_its_secrets() {
    let rows = [
        HttpGet { headers: vec![header("a b", "secret")], ..request(Scheme::Http, 1, "/") },
        HttpGet { headers: vec![header("auth", "secret\n")], ..request(Scheme::Http, 1, "/") },
        request(Scheme::Http, 1, "/ with spaces"),
    ];
    for asked in rows {
        let error = SystemNetwork.get(&asked).await.unwrap_err();
        assert!(matches!(error, NetworkError::Malformed { .. }), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_tcp_connection_is_made_or_its_error_names_the_target() {
    let (listener, port) = listen().await;
    let request = |port| TcpConnect { host: "localhost".to_owned(), port, timeout: PATIENCE };
    SystemNetwork.connect(&request(port)).await.unwrap();
    drop(listener);
    let error = SystemNetwork.connect(&request(port)).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot reach tcp://localhost:{port}: ")), "{error}");
}
