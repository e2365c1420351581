//! The server at a real socket in a temporary directory.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use oarsman_clock::SystemClock;
use oarsman_core::report::NodeReport;
use oarsman_cri::{Deadlines, RemoteRuntime};
use tempfile::{TempDir, tempdir};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::local_api::{ClientError, LocalClient, PodName};

struct LocalServerFixture {
    directory: TempDir,
    stopped: ordered_watch::Receiver<StoppedPods>,
    leave: CancellationToken,
    served: LocalServer,
}

fn fixture(is_run_mode: bool) -> LocalServerFixture {
    at(tempdir().unwrap(), "", is_run_mode)
}

fn at(directory: TempDir, below: &str, is_run_mode: bool) -> LocalServerFixture {
    let about = NodeReport { node: "n".to_owned(), is_run_mode, ..NodeReport::default() };
    let report_store = ReportStore::new(Arc::new(SystemClock::start()), about);
    let (stopped, absentees) = ordered_watch::channel(StoppedPods::new());
    let leave = CancellationToken::new();
    let runtime = RemoteRuntime::new("unix:///nonexistent", None, Deadlines::default()).unwrap();
    let streaming = StreamingService::new(Arc::new(|_, _| None), Arc::new(runtime), Duration::ZERO);
    let stats = LateStats::default();
    let api = LocalApi { report_store, stopped, leave: leave.clone(), streaming, stats };
    let root = directory.path().join(below);
    fs::create_dir_all(&root).unwrap();
    let served = serve(&root, api, TaskPanics::default()).unwrap();
    LocalServerFixture { directory, stopped: absentees, leave, served }
}

#[tokio::test]
async fn the_report_comes_over_a_socket_that_only_its_owner_may_use_and_that_goes_with_the_agent() {
    let fixture = fixture(false);
    let socket = fixture.directory.path().join("oarsman.sock");
    let found = fs::metadata(&socket).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let client = LocalClient::new(fixture.directory.path());
    assert_eq!(client.report().await.unwrap().node, "n");
    drop(fixture.served);
    assert!(!socket.exists());
    let silence = client.report().await.unwrap_err();
    assert!(matches!(silence, ClientError::NotRunning(_)), "{silence}");
}

#[tokio::test]
async fn the_socket_of_a_dead_agent_is_replaced() {
    let directory = tempdir().unwrap();
    drop(std::os::unix::net::UnixListener::bind(directory.path().join("oarsman.sock")).unwrap());
    let silence = LocalClient::new(directory.path()).report().await.unwrap_err();
    assert!(matches!(silence, ClientError::NotRunning(_)), "{silence}");
    let fixture = at(directory, "", false);
    assert_eq!(LocalClient::new(fixture.directory.path()).report().await.unwrap().node, "n");
}

#[tokio::test]
async fn a_root_directory_with_a_long_path_has_a_socket_too() {
    let below = ["a-directory-with-a-long-name"; 8].join("/");
    let fixture = at(tempdir().unwrap(), &below, false);
    let client = LocalClient::new(&fixture.directory.path().join(&below));
    assert_eq!(client.report().await.unwrap().node, "n");
}

#[tokio::test]
async fn a_request_to_stop_all_pods_reaches_the_agent_and_an_unknown_pod_is_refused() {
    let fixture = fixture(true);
    let client = LocalClient::new(fixture.directory.path());
    let unknown = PodName { namespace: "default".to_owned(), name: "web".to_owned() };
    let refused = client.stop(&StopRequest { pods: vec![unknown], all: false }).await.unwrap_err();
    assert_eq!(refused.to_string(), "there is no pod default/web");
    assert_eq!(fixture.stopped.get(), StoppedPods::new());
    assert!(!fixture.leave.is_cancelled());
    client.stop(&StopRequest { all: true, pods: Vec::new() }).await.unwrap();
    assert!(fixture.leave.is_cancelled());
}

/// The response to these bytes.
async fn answer_to(fixture: &LocalServerFixture, bytes: &[u8]) -> String {
    let socket = fixture.directory.path().join("oarsman.sock");
    let mut stream = UnixStream::connect(socket).await.unwrap();
    // A server that refuses the request early closes early.
    stream.write_all(bytes).await.ok();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn malformed_requests_are_refused_and_later_ones_answered() {
    let fixture = fixture(true);
    let head = |what: &str, length: usize| {
        format!(
            "{what} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let body = |text: &str| format!("{}{text}", head("POST /v1/stop", text.len()));
    let rows = [
        ("\u{0}\u{1}\u{2}\r\n\r\n".to_owned(), "400"),
        (head("GET /etc/passwd", 0), "404"),
        (head("DELETE /v1/report", 0), "405"),
        (body("{"), "400"),
        (body("{\"everything\":1}"), "400"),
        (body(&" ".repeat(100_000)), "413"),
    ];
    for (bytes, want) in rows {
        let answer = answer_to(&fixture, bytes.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {want}")), "{want}: {answer}");
    }
    assert!(!fixture.leave.is_cancelled());
    assert_eq!(LocalClient::new(fixture.directory.path()).report().await.unwrap().node, "n");
}

#[tokio::test]
async fn silent_connections_do_not_block_others() {
    let fixture = fixture(true);
    let socket = fixture.directory.path().join("oarsman.sock");
    let mut silent = Vec::new();
    for _ in 0..LIMITS.connections - 1 {
        silent.push(UnixStream::connect(&socket).await.unwrap());
    }
    assert_eq!(LocalClient::new(fixture.directory.path()).report().await.unwrap().node, "n");
}

#[test]
fn root_and_the_agents_own_user_are_trusted() {
    let rows = [(0, 0, true), (0, 7, true), (7, 7, true), (8, 7, false), (7, 0, false)];
    for (peer, own, want) in rows {
        assert_eq!(is_trusted(peer, own), want, "{peer} {own}");
    }
}
