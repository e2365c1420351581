//! Readers of logs that stall, or ask for far too much, while others need the same threads.

use std::future::Future;
use std::io::{Seek, SeekFrom, Write};

use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::*;

const SOON: Duration = Duration::from_secs(5);

/// A log of which no socket takes all.
fn with_long_log(logs: &Path) -> Arc<FakeHost> {
    let line = format!("2026-01-01T00:00:01Z stdout F {}\n", "x".repeat(1000));
    fs::write(logs.join("0.log"), line.repeat(32 * 1024)).unwrap();
    FakeHost::with_state(logs, &json!({ "running": {} }))
}

#[test]
fn log_readers_that_stall_leave_threads_to_others() {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).max_blocking_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let authority = TestAuthority::new();
        let fixture = serve(with_long_log, &authority, true).await;
        let mut stalled = Vec::new();
        for _ in 0..8 {
            let mut stream = fixture.connect(Some(authority.client("api"))).await;
            send(&mut stream, "/containerLogs/default/web/c?follow=true", None).await;
            let mut byte = [0];
            timeout(SOON, stream.read_exact(&mut byte)).await.unwrap().unwrap();
            stalled.push(stream);
        }
        // Until the sockets are full.
        sleep(Duration::from_millis(500)).await;
        assert!(timeout(SOON, spawn_blocking(|| ())).await.is_ok(), "all threads are taken");
        let path = "/containerLogs/default/idle/c?tailLines=1";
        let asked = fixture.ask(Some(authority.client("api")), path, None);
        assert_eq!(timeout(SOON, asked).await.unwrap().0, 200);
        drop(stalled);
    });
    runtime.shutdown_background();
}

#[tokio::test]
async fn a_follower_ends_when_its_pod_is_replaced_by_one_of_the_same_name() {
    let authority = TestAuthority::new();
    let mut node = None;
    let host = |logs: &Path| Arc::clone(node.insert(running(logs)));
    let fixture = serve(host, &authority, true).await;
    let mut stream = fixture.connect(Some(authority.client("api"))).await;
    send(&mut stream, "/containerLogs/default/web/c?follow=true", None).await;
    let mut answer = String::new();
    read_until(&mut stream, &mut answer, "two\n").await;
    node.unwrap().replace("web", &json!({ "running": {} }));
    timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert_eq!(parts(&answer), (200, "one\ntwo\n".to_owned()));
}

#[tokio::test]
async fn a_container_that_writes_byte_by_byte_causes_few_reads() {
    let authority = TestAuthority::new();
    let mut node = None;
    let host = |logs: &Path| Arc::clone(node.insert(running(logs)));
    let fixture = serve(host, &authority, true).await;
    let mut stream = fixture.connect(Some(authority.client("api"))).await;
    send(&mut stream, "/containerLogs/default/web/c?follow=true", None).await;
    let mut answer = String::new();
    read_until(&mut stream, &mut answer, "two\n").await;
    let (node, begin) = (node.unwrap(), tokio::time::Instant::now());
    let before = node.queries().1;
    let log = fixture.directory.path().join("0.log");
    let mut file = fs::File::options().append(true).open(log).unwrap();
    let line = format!("2026-01-01T00:00:03Z stdout F {}end\n", "x".repeat(2000));
    for byte in line.as_bytes() {
        file.write_all(&[*byte]).unwrap();
        tokio::task::yield_now().await;
    }
    read_until(&mut stream, &mut answer, "end\n").await;
    // The pod is looked up before each read.
    let reads = node.queries().1 - before;
    let most = 3 + usize::try_from(begin.elapsed().as_millis() / 50).unwrap();
    assert!(reads <= most, "{reads} reads in {:?}", begin.elapsed());
}

/// The longest time for which nothing else could run on this thread.
pub(super) async fn longest_pause<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let (mut longest, mut last) = (Duration::ZERO, tokio::time::Instant::now());
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return (done, longest.max(last.elapsed())),
            () = sleep(Duration::from_millis(5)) => longest = longest.max(last.elapsed()),
        }
        last = tokio::time::Instant::now();
    }
}

fn with_sparse_log(logs: &Path) -> Arc<FakeHost> {
    let mut file = fs::File::create(logs.join("0.log")).unwrap();
    file.seek(SeekFrom::Start(10 << 30)).unwrap();
    file.write_all(b"\n2026-01-01T00:00:01Z stdout F one\n2026-01-01T00:00:02Z stdout F two\n")
        .unwrap();
    FakeHost::with_state(logs, &json!({ "terminated": { "exitCode": 0 } }))
}

#[tokio::test]
async fn the_greatest_tail_of_a_sparse_log_of_10_gib_keeps_no_thread_of_the_runtime() {
    let authority = TestAuthority::new();
    let fixture = serve(with_sparse_log, &authority, true).await;
    let path = format!("/containerLogs/default/web/c?tailLines={}", i64::MAX);
    let asked = timeout(SOON, fixture.ask(Some(authority.client("api")), &path, None));
    let (answer, pause) = longest_pause(asked).await;
    assert_eq!(answer.unwrap(), (200, "one\ntwo\n".to_owned()));
    assert!(pause < Duration::from_secs(2), "{pause:?}");
}
