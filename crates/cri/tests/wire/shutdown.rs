//! Servers that are missing, stop, or are replaced.

use std::sync::Arc;

use oarsman_cri::Runtime;
use tokio::time::Instant;

use crate::calls;
use crate::harness::{SocketFixture, with_timeout};
use crate::recording_runtime::{RecorderMode, RecordingRuntime};

#[tokio::test]
async fn a_missing_server_is_unavailable_and_the_error_says_why() {
    let fixture = SocketFixture::new();
    let error = fixture.client().version().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let path = fixture.endpoint().replace("unix://", "");
    let why = format!("cannot connect to {path}: No such file");
    assert!(error.message().contains(&why), "{error}");
}

#[tokio::test]
async fn a_client_finds_the_runtime_again_after_a_restart() {
    let fixture = SocketFixture::new();
    let client = fixture.client();
    for _ in 0..3 {
        let served = fixture.serve(Arc::new(RecordingRuntime::new(RecorderMode::Answer)));
        client.version().await.unwrap();
        served.stop().await;
        let error = client.version().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
    }
}

#[tokio::test]
async fn a_client_finds_the_runtime_again_after_it_was_dropped_and_replaced() {
    let fixture = SocketFixture::new();
    let client = fixture.client();
    for _ in 0..3 {
        let served = fixture.serve(Arc::new(RecordingRuntime::new(RecorderMode::Answer)));
        client.version().await.unwrap();
        served.kill().await;
    }
}

#[tokio::test]
async fn a_call_under_way_is_unavailable_when_its_server_is_dropped() {
    let fixture = SocketFixture::new();
    let runtime = Arc::new(RecordingRuntime::new(RecorderMode::Hang));
    let served = fixture.serve(runtime.clone());
    let client = fixture.client();
    let call = tokio::spawn(async move { client.pull_image(calls::pull("a:1")).await });
    with_timeout(runtime.begun.acquire()).await.unwrap().forget();
    served.kill().await;
    let error = with_timeout(call).await.unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    with_timeout(runtime.dropped.acquire()).await.unwrap().forget();
}

#[tokio::test(start_paused = true)]
async fn calls_under_way_may_finish_when_the_server_stops() {
    let fixture = SocketFixture::new();
    let runtime = Arc::new(RecordingRuntime::new(RecorderMode::Hang));
    let served = fixture.serve(runtime.clone());
    let client = fixture.client();
    let call = tokio::spawn(async move { client.pull_image(calls::pull("a:1")).await });
    with_timeout(runtime.begun.acquire()).await.unwrap().forget();

    let began = Instant::now();
    served.stop().await;
    assert_eq!(began.elapsed().as_secs(), 10);
    let error = with_timeout(call).await.unwrap().unwrap_err();
    assert_eq!(error.message(), "the runtime is shutting down");
    assert!(error.is_unavailable(), "{error}");
}
