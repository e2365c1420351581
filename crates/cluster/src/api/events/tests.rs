//! What the API server is sent for an event, and what its answers mean.

use std::sync::Arc;

use hyper::http::Method;
use jiff::Timestamp;
use oarsman_clock::SystemClock;
use oarsman_core::event::PodEvent;
use oarsman_core::pod::PodExt;
use serde_json::Value;

use super::*;
use crate::api::testing::{self, TestRequests, pod};
use crate::{Cluster, ClusterError};

fn server() -> (ApiServer, TestRequests) {
    let (client, requests) = testing::client();
    (ApiServer::new(client, "n1", Arc::new(SystemClock::start())), requests)
}

fn counted(message: &str, count: i32) -> CountedEvent {
    let pod = pod("1", 5, "Running");
    let record = EventRecord {
        name: "web-1.17".to_owned(),
        message: message.to_owned(),
        count,
        first: Timestamp::UNIX_EPOCH,
        last: Timestamp::UNIX_EPOCH,
    };
    let event = PodEvent {
        field_path: Some("spec.containers{web}".to_owned()),
        ..PodEvent::warning("BackOff", message)
    };
    let resource_version = pod.metadata.resource_version.clone();
    CountedEvent { pod: pod.full_name(), uid: pod.uid(), resource_version, event, record }
}

async fn take(requests: &mut TestRequests) -> (Method, String, Value) {
    let call = requests.next().await;
    let heard = (call.method.clone(), call.path.clone(), call.body.clone());
    call.answer(200, &heard.2);
    heard
}

#[tokio::test(start_paused = true)]
async fn an_event_names_source_object_and_reason() {
    let (server, mut requests) = server();
    let event = counted("so it is", 1);
    let (recorded, (method, path, body)) =
        futures::join!(server.record(&event), take(&mut requests));
    assert_eq!(recorded, Ok(()));
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
    assert_eq!(body["metadata"]["name"], "web-1.17");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_is_patched_and_created_again_when_it_is_gone() {
    let (server, mut requests) = server();
    let again = counted("again", 2);
    let (_, (method, path, body)) = futures::join!(server.record(&again), take(&mut requests));
    assert_eq!((method, &*path), (Method::PATCH, "/api/v1/namespaces/default/events/web-1.17"));
    assert_eq!((&body["count"], &body["message"]), (&json!(2), &json!("again")));
    let other = async {
        requests.next().await.fail(404, "NotFound");
        take(&mut requests).await
    };
    let (recorded, (method, _, body)) = futures::join!(server.record(&again), other);
    assert_eq!((recorded, method, &body["count"]), (Ok(()), Method::POST, &json!(2)));
}

fn kind(recorded: &Result<()>) -> &'static str {
    match recorded {
        Ok(()) => "recorded",
        Err(ClusterError::Gone { .. }) => "gone",
        Err(ClusterError::Refused { .. }) => "refused",
        Err(ClusterError::Busy { .. }) => "busy",
        Err(ClusterError::Unavailable { .. }) => "unavailable",
    }
}

#[tokio::test(start_paused = true)]
async fn responses_become_the_right_errors_and_an_existing_event_counts_as_recorded() {
    let rows = [
        (1, 409, "AlreadyExists", "recorded"),
        (1, 404, "NotFound", "gone"),
        (1, 500, "InternalError", "unavailable"),
        (2, 500, "InternalError", "unavailable"),
        (1, 429, "TooManyRequests", "busy"),
        (1, 403, "Forbidden", "refused"),
        (2, 403, "Forbidden", "refused"),
    ];
    for (count, code, reason, want) in rows {
        let (server, mut requests) = server();
        let event = counted("once", count);
        let other = async { requests.next().await.fail(code, reason) };
        let recorded = futures::join!(server.record(&event), other).0;
        assert_eq!(kind(&recorded), want, "{count} {code}");
    }
}
