//! Calls end in time, at both ends. The clock is paused: it jumps to the next timer whenever
//! nothing else can happen, so that minutes take no time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oarsman_cri::{CriError, Runtime};
use tokio::time::{Instant, timeout};

use crate::calls;
use crate::harness::{SocketFixture, with_timeout};
use crate::recording_runtime::{RecorderMode, RecordingRuntime};

fn hanging_runtime() -> (SocketFixture, Arc<RecordingRuntime>) {
    let fixture = SocketFixture::new();
    let runtime = Arc::new(RecordingRuntime::new(RecorderMode::Hang));
    let _served = fixture.serve(runtime.clone());
    (fixture, runtime)
}

fn assert_late(error: &CriError, began: Instant, call: &str, seconds: u64) {
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.call(), call);
    assert_eq!(error.message(), format!("no answer within {seconds}s"));
    let took = began.elapsed().as_secs();
    assert_eq!(took, seconds, "{call}");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_answer_ends_when_its_time_is_up() {
    let (fixture, _runtime) = hanging_runtime();
    let client = fixture.client();

    let began = Instant::now();
    let error = client.start_container("c1").await.unwrap_err();
    assert_late(&error, began, "StartContainer", 120);
    assert_eq!(error.subject(), Some("c1"));

    let began = Instant::now();
    let error = client.run_pod_sandbox(calls::run_sandbox()).await.unwrap_err();
    assert_late(&error, began, "RunPodSandbox", 240);

    let began = Instant::now();
    let grace = Duration::from_secs(30);
    let error = client.stop_container("c1", grace).await.unwrap_err();
    assert_late(&error, began, "StopContainer", 150);

    let began = Instant::now();
    let error = client.exec_sync(calls::exec_sync(5)).await.unwrap_err();
    assert_late(&error, began, "ExecSync", 125);
}

#[tokio::test(start_paused = true)]
async fn the_runtime_learns_that_a_call_ran_out_of_time() {
    let (fixture, runtime) = hanging_runtime();
    fixture.client().start_container("c1").await.unwrap_err();
    with_timeout(runtime.dropped.acquire()).await.unwrap().forget();
}

#[tokio::test(start_paused = true)]
async fn a_pull_has_two_hours() {
    let (fixture, runtime) = hanging_runtime();
    let began = Instant::now();
    let error = fixture.client().pull_image(calls::pull("a:1")).await.unwrap_err();
    assert_late(&error, began, "PullImage", 7200);
    with_timeout(runtime.dropped.acquire()).await.unwrap().forget();
}

#[tokio::test(start_paused = true)]
async fn unlimited_commands_go_on_until_they_are_dropped() {
    let (fixture, runtime) = hanging_runtime();
    let client = fixture.client();
    let a_day = Duration::from_secs(24 * 60 * 60);

    let command = client.exec_sync(calls::exec_sync(0));
    timeout(a_day, command).await.unwrap_err();
    with_timeout(runtime.dropped.acquire()).await.unwrap().forget();
}

#[tokio::test]
async fn the_runtime_is_told_a_deadline_just_beyond_ours() {
    let told = Arc::new(Mutex::new(BTreeMap::new()));
    let fixture = SocketFixture::new();
    let notes = told.clone();
    fixture.serve_raw(move |request| {
        let timeout = request.headers().get("grpc-timeout");
        let timeout = timeout.map(|value| value.to_str().unwrap().to_owned());
        let call = request.uri().path().rsplit('/').next().unwrap().to_owned();
        notes.lock().unwrap().insert(call, timeout);
        async { tonic::Status::unimplemented("only listening").into_http() }
    });
    calls::call_everything(&fixture.client()).await;

    let mut told = told.lock().unwrap().clone();
    for (call, seconds) in [
        ("RunPodSandbox", Some(241)),
        ("StopContainer", Some(151)),
        ("ExecSync", Some(126)),
        ("CheckpointContainer", Some(128)),
        ("PullImage", Some(7201)),
        ("GetContainerEvents", None),
    ] {
        let timeout = seconds.map(|seconds| format!("{}m", seconds * 1000));
        assert_eq!(told.remove(call), Some(timeout), "{call}");
    }
    assert!(told.len() > 25, "{told:?}");
    for (call, timeout) in told {
        assert_eq!(timeout.as_deref(), Some("121000m"), "{call}");
    }
}
