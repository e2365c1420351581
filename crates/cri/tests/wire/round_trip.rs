//! Requests arrive at the server as they were sent, and responses at the client.

use std::sync::Arc;

use oarsman_cri::{Deadlines, RemoteRuntime, Runtime};

use crate::calls;
use crate::harness::SocketFixture;
use crate::recording_runtime::{RecorderMode, RecordingRuntime};

/// The number of calls in `call_everything`; each method of the trait but `info` is among them.
const CALLS: usize = 36;

#[tokio::test]
async fn a_runtime_over_the_wire_behaves_like_a_local_one() {
    let at_hand = RecordingRuntime::new(RecorderMode::Answer);
    let outcomes_at_hand = calls::call_everything(&at_hand).await;

    let fixture = SocketFixture::new();
    let behind = Arc::new(RecordingRuntime::new(RecorderMode::Answer));
    let _served = fixture.serve(behind.clone());
    let outcomes_behind = calls::call_everything(&fixture.client()).await;

    assert_eq!(outcomes_behind, outcomes_at_hand);
    assert_eq!(behind.log(), at_hand.log());
    assert_eq!(behind.log().len(), CALLS);
    assert!(outcomes_behind.iter().all(|outcome| outcome.starts_with("Ok(")));
}

#[tokio::test]
async fn details_come_through_the_verbose_calls() {
    let at_hand = RecordingRuntime::new(RecorderMode::Answer);
    let fixture = SocketFixture::new();
    let _served = fixture.serve(Arc::new(RecordingRuntime::new(RecorderMode::Answer)));
    let outcomes = calls::inspect(&fixture.client()).await;
    assert_eq!(outcomes, calls::inspect(&at_hand).await);
    assert!(outcomes[2].contains(r#"Container(\"c1\")"#), "{outcomes:?}");
}

#[tokio::test]
async fn images_can_live_at_another_endpoint() {
    let (here, there) = (SocketFixture::new(), SocketFixture::new());
    let (runtime, images) = (
        Arc::new(RecordingRuntime::new(RecorderMode::Answer)),
        Arc::new(RecordingRuntime::new(RecorderMode::Answer)),
    );
    let _served = (here.serve(runtime.clone()), there.serve(images.clone()));
    let elsewhere = there.endpoint();
    let client =
        RemoteRuntime::new(&here.endpoint(), Some(&elsewhere), Deadlines::default()).unwrap();

    client.pull_image(calls::pull("a:1")).await.unwrap();
    client.start_container("c1").await.unwrap();

    assert_eq!(runtime.log(), [r#"StartContainer "c1""#]);
    assert_eq!(images.log().len(), 1);
    assert!(images.log()[0].starts_with("PullImage"), "{:?}", images.log());
}
