//! The accept loop at a real socket in a temporary directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Extension;
use axum::body::Body;
use axum::routing::get;
use hyper::client::conn::http2::{self as client, SendRequest};
use hyper_util::rt::TokioExecutor;
use rustix::io::Errno;
use tempfile::{TempDir, tempdir};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;

struct AcceptFixture {
    _directory: TempDir,
    socket: PathBuf,
    end: CancellationToken,
    task: JoinHandle<()>,
}

fn serving(router: Router, connections: usize) -> AcceptFixture {
    serving_by(router, connections, false)
}

fn serving_by(router: Router, connections: usize, is_http2: bool) -> AcceptFixture {
    let directory = tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let second = Duration::from_secs(1);
    let limits = ConnectionLimits {
        connections,
        header_timeout: second,
        max_head_bytes: 8192,
        write_timeout: second,
        lifetime: 60 * second,
    };
    let end = CancellationToken::new();
    let task = tokio::spawn(serve(listener, limits, end.clone(), move |stream| {
        let mut extensions = Extensions::new();
        extensions.insert("a client");
        let router = router.clone();
        async move { Some(HttpConnection { stream: Box::new(stream), router, extensions, is_http2 }) }
    }));
    AcceptFixture { _directory: directory, socket, end, task }
}

async fn ask(stream: &mut UnixStream, headers: &str) {
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until the server closes the connection.
async fn rest(mut stream: UnixStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_request_has_the_extensions_of_its_connection() {
    let router = Router::new().route("/", get(async |Extension(who): Extension<&'static str>| who));
    let served = serving(router, 8);
    let mut stream = UnixStream::connect(&served.socket).await.unwrap();
    ask(&mut stream, "Connection: close\r\n").await;
    assert!(rest(stream).await.ends_with("a client"));
}

/// A listener that fails at first.
struct FlakyListener {
    listener: UnixListener,
    failures: AtomicUsize,
    error: Errno,
}

impl Listener for FlakyListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        let one_less = |left: usize| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Err(self.error.into());
        }
        Listener::accept(&self.listener).await
    }

    fn endpoint(&self) -> String {
        String::new()
    }
}

/// How long a client waits for its answer when so many connections cannot be accepted before.
async fn wait_after(failures: usize, error: Errno) -> Duration {
    let directory = tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let listener = FlakyListener { listener, failures: failures.into(), error };
    let second = Duration::from_secs(1);
    let limits = ConnectionLimits {
        connections: 8,
        header_timeout: second,
        max_head_bytes: 8192,
        write_timeout: second,
        lifetime: 60 * second,
    };
    let router = Router::new().route("/", get(async || "answered"));
    tokio::spawn(serve(listener, limits, CancellationToken::new(), move |stream| {
        let (router, extensions) = (router.clone(), Extensions::new());
        async {
            Some(HttpConnection { stream: Box::new(stream), router, extensions, is_http2: false })
        }
    }));
    let begin = tokio::time::Instant::now();
    let mut stream = UnixStream::connect(&socket).await.unwrap();
    ask(&mut stream, "Connection: close\r\n").await;
    assert!(rest(stream).await.ends_with("answered"));
    begin.elapsed()
}

#[tokio::test]
async fn clients_that_were_gone_before_they_were_accepted_delay_no_other() {
    let wait = wait_after(100, Errno::CONNABORTED).await;
    // A pause after each would be ten seconds.
    assert!(wait < Duration::from_secs(5), "{wait:?}");
}

#[tokio::test]
async fn without_a_free_descriptor_the_server_pauses_and_then_goes_on() {
    let wait = wait_after(3, Errno::MFILE).await;
    assert!(wait >= 3 * AFTER_A_FAILURE, "{wait:?}");
}

#[tokio::test]
async fn a_client_that_is_lost_is_noticed_by_the_kernel() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, _client) =
        tokio::join!(Listener::accept(&listener), TcpStream::connect(address));
    let accepted = accepted.unwrap();
    assert!(sockopt::socket_keepalive(&accepted).unwrap());
    assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap(), KEEPALIVE_AFTER);
    assert_eq!(sockopt::tcp_user_timeout(&accepted).unwrap(), LONGEST_UNACKNOWLEDGED_MILLIS);
}

async fn echo(request: Request<Body>) -> Response {
    tokio::spawn(async {
        let mut upgraded = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        let mut bytes = [0; 5];
        upgraded.read_exact(&mut bytes).await.unwrap();
        upgraded.write_all(&bytes).await.unwrap();
    });
    let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    answer.header("Upgrade", "echo").header("Connection", "Upgrade").body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_connection_can_be_upgraded() {
    let served = serving(Router::new().route("/", get(echo)), 8);
    let mut stream = UnixStream::connect(&served.socket).await.unwrap();
    ask(&mut stream, "Upgrade: echo\r\nConnection: Upgrade\r\n").await;
    stream.write_all(b"hello").await.unwrap();
    let text = rest(stream).await;
    assert!(text.starts_with("HTTP/1.1 101") && text.ends_with("\r\n\r\nhello"), "{text}");
}

#[tokio::test]
async fn when_it_ends_requests_under_way_are_answered_and_others_refused() {
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (Arc::clone(&asked), Arc::clone(&go_on));
    let router = Router::new().route(
        "/",
        get(async move || {
            signals.0.notify_one();
            signals.1.notified().await;
            "answered"
        }),
    );
    let served = serving(router, 8);
    let mut stream = UnixStream::connect(&served.socket).await.unwrap();
    ask(&mut stream, "").await;
    asked.notified().await;
    served.end.cancel();
    go_on.notify_one();
    assert!(rest(stream).await.ends_with("answered"));
    served.task.await.unwrap();
    assert!(UnixStream::connect(&served.socket).await.is_err());
}

#[tokio::test]
async fn a_connection_too_many_waits_until_another_ends() {
    let served = serving(Router::new().route("/", get(async || "answered")), 1);
    let mut first = UnixStream::connect(&served.socket).await.unwrap();
    ask(&mut first, "").await;
    let mut head = [0; 12];
    first.read_exact(&mut head).await.unwrap();
    let mut second = UnixStream::connect(&served.socket).await.unwrap();
    ask(&mut second, "Connection: close\r\n").await;
    let mut byte = [0];
    let waits = timeout(Duration::from_millis(50), second.read(&mut byte)).await;
    assert!(waits.is_err(), "the first has not ended");
    drop(first);
    assert!(rest(second).await.ends_with("answered"));
}

/// Without an end; tells when it begins and when it is given up.
fn endless(started: &Arc<Notify>, ended: &Arc<Notify>) -> Router {
    let signals = (Arc::clone(started), Arc::clone(ended));
    Router::new().route("/healthz", get(async || "ok")).route(
        "/",
        get(async move || {
            let (started, ended) = signals;
            let state = (started, SignalOnDrop(ended));
            let endless = futures::stream::unfold(state, async |state| {
                state.0.notify_one();
                Some((Ok::<_, io::Error>(vec![0; 64 * 1024]), state))
            });
            Body::from_stream(Box::pin(endless))
        }),
    )
}

#[tokio::test]
async fn a_client_that_takes_nothing_loses_its_connection() {
    let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let served = serving(endless(&started, &ended), 8);
    let mut stream = UnixStream::connect(&served.socket).await.unwrap();
    ask(&mut stream, "").await;
    started.notified().await;
    // The limit is a second here; it has ten.
    timeout(Duration::from_secs(10), ended.notified()).await.unwrap();
    drop(stream);
}

/// Tells when what holds it has been dropped.
struct SignalOnDrop(Arc<Notify>);

impl Drop for SignalOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

async fn http2_client(
    served: &AcceptFixture,
) -> (SendRequest<Body>, JoinHandle<hyper::Result<()>>) {
    let stream = UnixStream::connect(&served.socket).await.unwrap();
    let mut builder = client::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1024);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

async fn ask_http2(sender: &SendRequest<Body>, path: &str) -> hyper::Response<Incoming> {
    let request = Request::get(format!("http://localhost{path}")).body(Body::empty()).unwrap();
    sender.clone().send_request(request).await.unwrap()
}

#[tokio::test]
async fn a_stream_of_which_nothing_is_taken_is_reset_and_others_of_its_connection_go_on() {
    let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let served = serving_by(endless(&started, &ended), 8, true);
    let (sender, _connection) = http2_client(&served).await;
    let stalled = ask_http2(&sender, "/").await;
    started.notified().await;
    // The limit is a second here; it has ten.
    timeout(Duration::from_secs(10), ended.notified()).await.unwrap();
    assert_eq!(ask_http2(&sender, "/healthz").await.status(), StatusCode::OK);
    drop(stalled);
}

#[tokio::test]
async fn streams_end_with_their_connection() {
    let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let served = serving_by(endless(&started, &ended), 8, true);
    let (sender, connection) = http2_client(&served).await;
    let response = ask_http2(&sender, "/").await;
    started.notified().await;
    connection.abort();
    drop((sender, response));
    timeout(Duration::from_secs(10), ended.notified()).await.unwrap();
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_before_and_after_the_preface() {
    let served = serving_by(Router::new(), 8, true);
    let mut silent = UnixStream::connect(&served.socket).await.unwrap();
    let read = timeout(Duration::from_secs(10), silent.read_to_end(&mut Vec::new())).await;
    read.unwrap().unwrap();
    let (_sender, connection) = http2_client(&served).await;
    timeout(Duration::from_secs(10), connection).await.unwrap().unwrap().ok();
}

#[tokio::test]
async fn when_it_ends_streams_under_way_are_answered() {
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (Arc::clone(&asked), Arc::clone(&go_on));
    let router = Router::new().route(
        "/",
        get(async move || {
            signals.0.notify_one();
            signals.1.notified().await;
            "answered"
        }),
    );
    let served = serving_by(router, 8, true);
    let (sender, _connection) = http2_client(&served).await;
    let answer = tokio::spawn(async move { ask_http2(&sender, "/").await.status() });
    asked.notified().await;
    served.end.cancel();
    go_on.notify_one();
    assert_eq!(answer.await.unwrap(), StatusCode::OK);
    served.task.await.unwrap();
}
