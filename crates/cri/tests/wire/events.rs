//! Streams of container events.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use oarsman_cri::{ErrorCode, EventStream, Runtime};
use tokio::time::Instant;

use crate::harness::{RunningServer, SocketFixture, with_timeout};
use crate::recording_runtime::{RecorderMode, RecordingRuntime};

/// Reads the recorder's two events.
async fn subscribed() -> (SocketFixture, RunningServer, EventStream) {
    let fixture = SocketFixture::new();
    let served = fixture.serve(Arc::new(RecordingRuntime::new(RecorderMode::Answer)));
    let mut events = fixture.client().container_events().await.unwrap();
    for id in ["c1", "c2"] {
        let event = with_timeout(events.next()).await.unwrap().unwrap();
        assert_eq!(event.container_id, id);
    }
    (fixture, served, events)
}

/// What is left until the end; at most the error that the connection broke.
async fn assert_ends(events: EventStream) {
    for rest in with_timeout(events.collect::<Vec<_>>()).await {
        let error = rest.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        assert_eq!(error.call(), "GetContainerEvents");
    }
}

#[tokio::test]
async fn events_end_when_the_server_stops() {
    let (_place, served, events) = subscribed().await;
    served.stop().await;
    assert_ends(events).await;
}

#[tokio::test]
async fn events_end_when_the_server_is_dropped() {
    let (_place, served, events) = subscribed().await;
    served.kill().await;
    assert_ends(events).await;
}

#[tokio::test]
async fn a_refused_subscription_is_an_error_at_once() {
    let fixture = SocketFixture::new();
    let _served = fixture
        .serve(Arc::new(RecordingRuntime::new(RecorderMode::Fail(ErrorCode::Unimplemented))));
    let refused = fixture.client().container_events().await.map(drop);
    assert!(refused.unwrap_err().is_unimplemented());
}

#[tokio::test(start_paused = true)]
async fn silence_of_a_runtime_counts_as_a_subscription() {
    let fixture = SocketFixture::new();
    fixture.serve_raw(|_| std::future::pending());
    let began = Instant::now();
    let mut events = fixture.client().container_events().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 1);
    let an_hour = Duration::from_secs(60 * 60);
    assert!(tokio::time::timeout(an_hour, events.next()).await.is_err());
}
