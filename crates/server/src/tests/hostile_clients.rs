//! Clients that send half of a request or ask for far too much, while others ask for what they need.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::JoinSet;

use super::*;

const SOON: Duration = Duration::from_secs(5);
const CONNECTIONS: usize = 2_000;

/// Both ends of all connections are in this process.
fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Connections on each of which the beginning of something was sent.
async fn unfinished(address: SocketAddr, begin: &'static [u8]) -> Vec<TcpStream> {
    let mut connecting = JoinSet::new();
    for _ in 0..CONNECTIONS {
        connecting.spawn(async move {
            // Some wait for the server to take others; they are no less a burden.
            let mut stream = timeout(SOON, TcpStream::connect(address)).await.ok()?.ok()?;
            stream.write_all(begin).await.ok()?;
            Some(stream)
        });
    }
    connecting.join_all().await.into_iter().flatten().collect()
}

#[tokio::test]
async fn two_thousand_unfinished_requests_keep_no_other_from_being_answered() {
    raise_descriptor_limit();
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let secure = unfinished(fixture.secure, b"\x16\x03\x01").await;
    let health = unfinished(fixture.health, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-").await;
    let asked = fixture.ask(Some(authority.client("api")), "/healthz", None);
    assert_eq!(timeout(SOON, asked).await.unwrap().0, 200, "by certificate");
    let asked = fixture.ask(None, "/pods", Some("secret"));
    assert_eq!(timeout(SOON, asked).await.unwrap().0, 200, "by token");
    assert_eq!(timeout(SOON, plain(fixture.health, "")).await.unwrap().0, 200, "without TLS");
    drop((secure, health));
}

/// A request without TLS, with more headers.
async fn plain(address: SocketAddr, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A server that has enough closes, and may do so before all was sent.
    stream.read_to_end(&mut answer).await.ok();
    parts(&String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn the_head_of_a_request_has_at_most_32_kib() {
    let fixture = serve(ended, &TestAuthority::new(), true).await;
    let header = |length| format!("X-Long: {}\r\n", "x".repeat(length));
    assert_eq!(plain(fixture.health, &header(16 * 1024)).await.0, 200);
    assert_eq!(plain(fixture.health, &header(40 * 1024)).await.0, 431);
}

#[tokio::test]
async fn a_client_that_is_unknown_is_answered_and_its_connection_closed() {
    let fixture = serve(ended, &TestAuthority::new(), true).await;
    let mut stream = fixture.connect(None).await;
    stream.write_all(b"GET /pods HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert_eq!(parts(&answer), (401, "Unauthorized".to_owned()));
}

#[tokio::test]
async fn tokens_that_are_invented_ask_the_api_server_only_now_and_then() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    assert_eq!(fixture.ask(None, "/pods", Some("secret")).await.0, 200);
    let before = fixture.fake_reviewer.asked.load(Ordering::SeqCst);
    let begin = tokio::time::Instant::now();
    for number in 0..100 {
        let status = fixture.ask(None, "/pods", Some(&format!("invented-{number}"))).await.0;
        assert!(matches!(status, 401 | 429), "{status}");
    }
    let asked = fixture.fake_reviewer.asked.load(Ordering::SeqCst) - before;
    // Forty at once, and ten a second.
    let most = 41 + usize::try_from(begin.elapsed().as_millis() / 100).unwrap();
    assert!((1..=most).contains(&asked), "{asked} reviews for 100 tokens");
    assert_eq!(fixture.ask(None, "/pods", Some("secret")).await.0, 200, "a known token");
    assert_eq!(fixture.ask(Some(authority.client("api")), "/pods", None).await.0, 200);
}
