//! HTTP/2 over TLS: the same answers, many at once, and the limits of clients that mean harm.

use axum::body::Body;
use futures::future::join_all;
use http_body_util::BodyExt;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinHandle;

use super::*;

/// For what happens at once: longer than a loaded machine needs, and much shorter than the five minutes after which a connection ends for other reasons.
const DEADLINE: Duration = Duration::from_secs(120);

struct Http2Client {
    sender: SendRequest<Body>,
    connection: JoinHandle<hyper::Result<()>>,
}

impl Http2Client {
    async fn connect(
        fixture: &ServerFixture,
        authority: &TestAuthority,
        user: Option<&str>,
    ) -> Self {
        let stream = fixture.connect_http2(user.map(|user| authority.client(user))).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let io = TokioIo::new(stream);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        Self { sender, connection: tokio::spawn(connection) }
    }

    async fn get(&self, path: &str) -> hyper::Response<hyper::body::Incoming> {
        let request = Request::get(format!("https://localhost{path}")).body(Body::empty()).unwrap();
        timeout(LONG, self.sender.clone().send_request(request)).await.unwrap().unwrap()
    }

    async fn ask(&self, path: &str) -> (u16, String) {
        let response = self.get(path).await;
        assert_eq!(response.version(), Version::HTTP_2);
        let status = response.status().as_u16();
        let body = timeout(LONG, response.into_body().collect()).await.unwrap().unwrap();
        (status, String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }
}

impl ServerFixture {
    async fn connect_http2(
        &self,
        who: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    ) -> tokio_rustls::client::TlsStream<TcpStream> {
        self.connect_by(
            who.map(|(certificate, key)| (vec![certificate], key)),
            &[b"h2", b"http/1.1"],
        )
        .await
    }
}

#[tokio::test]
async fn requests_are_answered_as_over_http_1() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let client = Http2Client::connect(&fixture, &authority, Some("api")).await;
    let rows = [
        ("/healthz", 200, "ok"),
        ("/containerLogs/default/web/c", 200, "one\ntwo\n"),
        ("/pods", 200, "\"kind\":\"PodList\""),
        ("/nothing", 404, ""),
        ("/exec/default/web/c", 403, "verb=create, resource=nodes"),
    ];
    let answers = join_all(rows.map(|(path, _, _)| client.ask(path))).await;
    for ((path, status, said), answer) in rows.into_iter().zip(answers) {
        assert!(answer.0 == status && answer.1.contains(said), "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_client_that_offers_only_http_1_gets_it() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let stream = fixture.connect_by(None, &[b"http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn a_connection_cannot_be_upgraded_over_http_2() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let client = Http2Client::connect(&fixture, &authority, Some("exec")).await;
    let request = Request::post("https://localhost/exec/default/web/c?command=ls&output=1");
    let request = request.body(Body::empty()).unwrap();
    let response = client.sender.clone().send_request(request).await.unwrap();
    assert!(response.status().is_client_error(), "{}", response.status());
    assert_eq!(client.ask("/healthz").await.0, 403, "the connection is as before");
}

#[tokio::test]
async fn a_client_that_is_unknown_is_answered_and_its_connection_closed() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let client = Http2Client::connect(&fixture, &authority, None).await;
    assert_eq!(client.ask("/pods").await, (401, "Unauthorized".to_owned()));
    timeout(DEADLINE, client.connection).await.unwrap().unwrap().ok();
}

#[tokio::test]
async fn the_head_of_a_request_has_at_most_32_kib() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let client = Http2Client::connect(&fixture, &authority, Some("api")).await;
    let ask = async |length: usize| {
        let request =
            Request::get("https://localhost/healthz").header("x-long", "x".repeat(length));
        let request = request.body(Body::empty()).unwrap();
        client.sender.clone().send_request(request).await
    };
    assert_eq!(ask(16 * 1024).await.unwrap().status(), StatusCode::OK);
    // A client that respects the setting does not send it at all.
    let status = ask(40 * 1024).await.map(|response| response.status());
    assert!(
        status.as_ref().is_ok_and(|it| *it == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
            || status.is_err(),
        "{status:?}"
    );
}

/// Row S27 of docs/security.md.
#[tokio::test]
async fn a_user_who_takes_none_of_many_answers_keeps_no_other_user_from_being_served() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let stream = fixture.connect_http2(Some(authority.client("api"))).await;
    // No byte of a body fits.
    let handshake = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(0)
        .handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    let greedy = Http2Client { sender, connection: tokio::spawn(connection) };
    let held = join_all((0..8).map(|_| greedy.get("/pods"))).await;
    assert!(held.iter().all(|answer| answer.status() == StatusCode::OK));
    for path in ["/pods", "/runningpods"] {
        assert_eq!(greedy.get(path).await.status(), StatusCode::TOO_MANY_REQUESTS, "{path}");
    }
    let (status, list) = fixture.ask(None, "/pods", Some("secret")).await;
    assert!(status == 200 && list.contains("PodList"), "{status} {list}");
    // The places come back when the answers are given up.
    drop(held);
    let is_served = async {
        while greedy.get("/pods").await.status() != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, is_served).await.unwrap();
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The kinds and payloads of frames that have come whole.
fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(9) {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let Some((payload, rest)) = rest.split_at_checked(length) else { break };
        frames.push((head[3], payload.to_vec()));
        bytes = rest;
    }
    frames
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// Of a GOAWAY: the client causes too much load.
const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 11];

/// The client has rights: nothing but the limit ends its connection.
#[tokio::test]
async fn streams_that_are_reset_at_once_end_the_connection_of_their_client_alone() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let mut hostile = fixture.connect_http2(Some(authority.client("api"))).await;
    // GET https /, and the end of the request; then the reset.
    let reset = |number: u32| {
        let stream = 2 * number + 1;
        [frame(1, 5, stream, &[0x82, 0x87, 0x84]), frame(3, 0, stream, &[0, 0, 0, 8])].concat()
    };
    let begin = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[])].concat();
    hostile.write_all(&[begin, (0..100).flat_map(reset).collect()].concat()).await.unwrap();
    let mut answer = Vec::new();
    timeout(DEADLINE, hostile.read_to_end(&mut answer)).await.unwrap().ok();
    let frames = frames(&answer);
    let refusal = frames.iter().find(|(kind, _)| *kind == GOAWAY);
    assert!(refusal.is_some_and(|(_, said)| said[4..8] == ENHANCE_YOUR_CALM), "{frames:?}");
    let other = Http2Client::connect(&fixture, &authority, Some("api")).await;
    assert_eq!(timeout(DEADLINE, other.ask("/healthz")).await.unwrap().0, 200);
}

#[tokio::test]
async fn the_server_announces_its_limits() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let mut stream = fixture.connect_http2(None).await;
    let begin = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&begin).await.unwrap();
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    while frames(&answer).is_empty() {
        let read = timeout(DEADLINE, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(read > 0, "closed");
        answer.extend_from_slice(&buffer[..read]);
    }
    let (kind, settings) = frames(&answer).remove(0);
    let settings: Vec<&[u8]> = settings.chunks(6).collect();
    assert_eq!(kind, SETTINGS);
    // Streams, the window of a stream, and the size of a head.
    for limit in [[0, 3, 0, 0, 0, 128], [0, 4, 0, 1, 0, 0], [0, 6, 0, 0, 128, 0]] {
        assert!(settings.contains(&&limit[..]), "{limit:?} in {settings:?}");
    }
}

#[tokio::test]
async fn many_followers_share_a_connection_and_one_that_reads_nothing_stops_no_other() {
    let authority = TestAuthority::new();
    let long = |logs: &Path| {
        let line = format!("2026-01-01T00:00:01Z stdout F {}\n", "x".repeat(1000));
        fs::write(logs.join("0.log"), line.repeat(2000)).unwrap();
        FakeHost::with_state(logs, &json!({ "terminated": { "exitCode": 0 } }))
    };
    let fixture = serve(long, &authority, true).await;
    let client = Http2Client::connect(&fixture, &authority, Some("api")).await;
    let stalled = client.get("/containerLogs/default/web/c").await;
    let (status, body) = client.ask("/containerLogs/default/web/c?tailLines=3").await;
    assert_eq!((status, body.lines().count()), (200, 3));
    let answers = join_all((0..20).map(|_| client.ask("/healthz"))).await;
    assert!(answers.iter().all(|answer| answer.0 == 200));
    let rest = timeout(LONG, stalled.into_body().collect()).await.unwrap().unwrap().to_bytes();
    assert_eq!(rest.len(), 2000 * 1001);
}
