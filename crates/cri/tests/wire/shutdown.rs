//! Servers go, and come back.

use std::sync::Arc;

use oarsman_cri::Runtime;
use tokio::time::Instant;

use crate::harness::{Place, soon};
use crate::recorder::{Mode, Recorder};
use crate::script;

#[tokio::test]
async fn nobody_there_is_unavailable_and_says_why() {
    let place = Place::new();
    let error = place.client().version().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let path = place.endpoint().replace("unix://", "");
    let why = format!("cannot connect to {path}: No such file");
    assert!(error.message().contains(&why), "{error}");
}

#[tokio::test]
async fn a_client_finds_the_runtime_again_after_a_restart() {
    let place = Place::new();
    let client = place.client();
    for _ in 0..3 {
        let served = place.serve(Arc::new(Recorder::new(Mode::Answer)));
        client.version().await.unwrap();
        served.stop().await;
        let error = client.version().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
    }
}

#[tokio::test]
async fn a_client_finds_the_runtime_again_after_it_was_dropped_and_replaced() {
    let place = Place::new();
    let client = place.client();
    for _ in 0..3 {
        let served = place.serve(Arc::new(Recorder::new(Mode::Answer)));
        client.version().await.unwrap();
        served.kill().await;
    }
}

#[tokio::test]
async fn a_call_under_way_is_unavailable_when_its_server_is_dropped() {
    let place = Place::new();
    let runtime = Arc::new(Recorder::new(Mode::Hang));
    let served = place.serve(runtime.clone());
    let client = place.client();
    let call = tokio::spawn(async move { client.pull_image(script::pull("a:1")).await });
    soon(runtime.begun.acquire()).await.unwrap().forget();
    served.kill().await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    soon(runtime.dropped.acquire()).await.unwrap().forget();
}

#[tokio::test(start_paused = true)]
async fn calls_under_way_have_a_while_to_finish_when_the_server_stops() {
    let place = Place::new();
    let runtime = Arc::new(Recorder::new(Mode::Hang));
    let served = place.serve(runtime.clone());
    let client = place.client();
    let call = tokio::spawn(async move { client.pull_image(script::pull("a:1")).await });
    soon(runtime.begun.acquire()).await.unwrap().forget();

    let began = Instant::now();
    served.stop().await;
    assert_eq!(began.elapsed().as_secs(), 10);
    let error = soon(call).await.unwrap().unwrap_err();
    assert_eq!(error.message(), "the runtime is shutting down");
    assert!(error.is_unavailable(), "{error}");
}
