//! Facts about how events are told.

use hyper::http::Method;
use oarsman_clock::SystemClock;
use serde_json::Value;
use tokio::time::Instant;

use super::*;
use crate::Cluster;
use crate::api::testing::{self, Calls, pod};

fn server() -> (ApiServer, Calls) {
    let (client, calls) = testing::client();
    (ApiServer::new(client, "n1", Arc::new(SystemClock::start())), calls)
}

fn event(message: &str) -> PodEvent {
    PodEvent::warning("BackOff", message)
}

async fn take(calls: &mut Calls) -> (Method, String, Value) {
    let call = calls.next().await;
    let heard = (call.method.clone(), call.path.clone(), call.body.clone());
    call.answer(200, &heard.2);
    heard
}

#[tokio::test(start_paused = true)]
async fn an_event_is_told_with_who_what_and_where() {
    let (server, mut calls) = server();
    let event =
        PodEvent { field_path: Some("spec.containers{web}".to_owned()), ..event("so it is") };
    let pod = pod("1", 5, "Running");
    let (_, (method, path, body)) = futures::join!(server.record(&pod, &event), take(&mut calls));
    assert_eq!((method, &*path), (Method::POST, "/api/v1/namespaces/default/events"));
    let about = json!({
        "apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web-1", "uid": "1",
        "resourceVersion": "5", "fieldPath": "spec.containers{web}",
    });
    assert_eq!(body["involvedObject"], about);
    assert_eq!(body["source"], json!({ "component": "kubelet", "host": "n1" }));
    assert_eq!(body["reportingComponent"], "kubelet");
    assert_eq!((&body["type"], &body["reason"]), (&json!("Warning"), &json!("BackOff")));
    assert_eq!((&body["message"], &body["count"]), (&json!("so it is"), &json!(1)));
    assert_eq!(body["firstTimestamp"], body["lastTimestamp"]);
    let name = body["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-1."), "{name}");
}

#[tokio::test(start_paused = true)]
async fn the_same_again_is_counted_and_told_anew_when_it_was_forgotten() {
    let (server, mut calls) = server();
    let pod = pod("1", 5, "Running");
    let happened = event("again");
    let (_, (_, _, first)) = futures::join!(server.record(&pod, &happened), take(&mut calls));
    let name = first["metadata"]["name"].as_str().unwrap().to_owned();
    let (_, (method, path, body)) =
        futures::join!(server.record(&pod, &happened), take(&mut calls));
    assert_eq!(
        (method, path),
        (Method::PATCH, format!("/api/v1/namespaces/default/events/{name}"))
    );
    assert_eq!(body["count"], 2);
    let other = async {
        calls.next().await.fail(404, "NotFound");
        take(&mut calls).await
    };
    let (_, (method, _, body)) = futures::join!(server.record(&pod, &happened), other);
    assert_eq!((method, &body["count"]), (Method::POST, &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn an_event_waits_for_an_api_server_that_is_away_and_is_not_told_twice() {
    let (server, mut calls) = server();
    let pod = pod("1", 5, "Running");
    let happened = event("once");
    let other = async {
        calls.next().await.fail(503, "ServiceUnavailable");
        drop(calls.next().await);
        // It had taken it, and the answer was lost.
        calls.next().await.fail(409, "AlreadyExists");
    };
    futures::join!(server.record(&pod, &happened), other).0.unwrap();
    assert!(calls.none_within(Duration::from_secs(60)).await);
}

#[tokio::test(start_paused = true)]
async fn what_its_caller_had_no_time_for_goes_with_the_next() {
    let (server, mut calls) = server();
    let pod = pod("1", 5, "Running");
    let (first, second) = (event("first"), event("second"));
    let given_up = tokio::time::timeout(Duration::from_secs(5), server.record(&pod, &first));
    let (given_up, unanswered) = futures::join!(given_up, calls.next());
    assert!(given_up.is_err());
    drop(unanswered);
    let other = async { [take(&mut calls).await, take(&mut calls).await] };
    let (_, heard) = futures::join!(server.record(&pod, &second), other);
    assert_eq!(
        heard.map(|(_, _, body)| body["message"].clone()),
        [json!("first"), json!("second")]
    );
}

#[tokio::test(start_paused = true)]
async fn what_nobody_will_ever_take_is_dropped() {
    let (server, mut calls) = server();
    let pod = pod("1", 5, "Running");
    let happened = event("in a namespace that goes");
    let other = async { calls.next().await.fail(403, "Forbidden") };
    futures::join!(server.record(&pod, &happened), other).0.unwrap();
    assert!(calls.none_within(Duration::from_secs(60)).await);
}

#[tokio::test(start_paused = true)]
async fn many_events_take_their_time() {
    let (server, mut calls) = server();
    let since = Instant::now();
    let told = async {
        for number in 0..200 {
            server.record(&pod(&number.to_string(), 5, "Running"), &event("now")).await.unwrap();
        }
    };
    let other = async {
        for _ in 0..200 {
            take(&mut calls).await;
        }
    };
    futures::join!(told, other);
    let took = since.elapsed();
    assert!((Duration::from_millis(1_900)..Duration::from_secs(3)).contains(&took), "{took:?}");
}
