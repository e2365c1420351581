//! Facts about what is asked of the API server when a status changes.

use std::sync::Arc;
use std::time::Duration;

use hyper::http::Method;
use k8s_openapi::api::core::v1::PodCondition;
use oarsman_clock::SystemClock;
use serde_json::{Value, json};

use super::*;
use crate::Cluster;
use crate::api::testing::{self, TestRequest, TestRequests, pod};
use crate::api::watch::WatchUpdate;

const PATH: &str = "/api/v1/namespaces/default/pods/web-1";

fn name() -> FullName {
    FullName { name: "web-1".to_owned(), namespace: "default".to_owned() }
}

fn uid() -> PodUid {
    PodUid::from("1")
}

fn status(phase: &str) -> PodStatus {
    PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
}

/// An API server that told of pod 1 as of version 5, pending.
fn told() -> (ApiServer, TestRequests) {
    let (client, requests) = testing::client();
    let server = ApiServer::new(client, "n1", Arc::new(SystemClock::start()));
    server.store.apply_update(WatchUpdate::Listed(vec![pod("1", 5, "Pending")]));
    (server, requests)
}

async fn publish(server: &ApiServer, phase: &str) -> Result<()> {
    server.publish(&name(), &uid(), &status(phase)).await
}

async fn delete(server: &ApiServer) -> Result<()> {
    server.delete(&name(), &uid()).await
}

fn json_of(pod: &Pod) -> Value {
    serde_json::to_value(pod).unwrap()
}

/// The next call, which must be a patch of the status.
async fn patched(requests: &mut TestRequests) -> TestRequest {
    let call = requests.next().await;
    assert_eq!((&call.method, &*call.path), (&Method::PATCH, &*format!("{PATH}/status")));
    assert_eq!(call.body["metadata"]["uid"], "1");
    call
}

/// The next call, which must be a question for the pod.
async fn asked(requests: &mut TestRequests) -> TestRequest {
    let call = requests.next().await;
    assert_eq!((&call.method, &*call.path), (&Method::GET, PATH));
    call
}

#[tokio::test(start_paused = true)]
async fn a_change_costs_one_patch_and_none_costs_nothing() {
    let (server, mut requests) = told();
    let other = async {
        let call = patched(&mut requests).await;
        assert_eq!(call.body["status"], json!({ "phase": "Running" }));
        call.answer(200, &json_of(&pod("1", 6, "Running")));
    };
    let (published, ()) = futures::join!(publish(&server, "Running"), other);
    published.unwrap();
    let other = async {
        let call = patched(&mut requests).await;
        assert_eq!(call.body["status"], json!({ "phase": "Failed" }), "against our own write");
        call.answer(200, &json_of(&pod("1", 7, "Failed")));
    };
    let (published, ()) = futures::join!(publish(&server, "Failed"), other);
    published.unwrap();
    publish(&server, "Failed").await.unwrap();
    assert!(requests.none_within(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_pod_unknown_to_the_watch_is_read_first() {
    let (client, mut requests) = testing::client();
    let server = ApiServer::new(client, "n1", Arc::new(SystemClock::start()));
    let gate = PodCondition {
        type_: "example.com/gate".to_owned(),
        status: "True".to_owned(),
        ..PodCondition::default()
    };
    let mut theirs = pod("1", 5, "Pending");
    theirs.status.as_mut().unwrap().conditions = Some(vec![gate]);
    let other = async {
        asked(&mut requests).await.answer(200, &json_of(&theirs));
        let call = patched(&mut requests).await;
        assert_eq!(call.body["status"], json!({ "phase": "Running" }), "the gate stays");
        call.answer(200, &json_of(&pod("1", 6, "Running")));
    };
    let (published, ()) = futures::join!(publish(&server, "Running"), other);
    published.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_status_of_another_pod_of_the_same_name_is_never_changed() {
    for (code, reason) in [(409, "Conflict"), (422, "Invalid")] {
        let (server, mut requests) = told();
        let other = async {
            patched(&mut requests).await.fail(code, reason);
            asked(&mut requests).await.answer(
                200,
                &json_of(&Pod {
                    metadata: pod("2", 9, "Pending").metadata,
                    ..pod("2", 9, "Pending")
                }),
            );
        };
        let (published, ()) = futures::join!(publish(&server, "Running"), other);
        assert_eq!(published, Err(ClusterError::Gone { object: "pod web-1_default".to_owned() }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_a_node_may_not_read_is_known_by_the_answer_to_the_write() {
    let rows = [(404, "NotFound", true), (409, "Conflict", true), (200, "", false)];
    for (code, reason, gone) in rows {
        let (client, mut requests) = testing::client();
        let server = ApiServer::new(client, "n1", Arc::new(SystemClock::start()));
        let other = async {
            asked(&mut requests).await.fail(403, "Forbidden");
            let call = patched(&mut requests).await;
            match code {
                200 => return call.answer(200, &json_of(&pod("1", 6, "Running"))),
                404 => return call.fail(code, reason),
                _ => call.fail(code, reason),
            }
            asked(&mut requests).await.fail(403, "Forbidden");
        };
        let (published, ()) = futures::join!(publish(&server, "Running"), other);
        let want = ClusterError::Gone { object: "pod web-1_default".to_owned() };
        assert_eq!(published.err(), gone.then_some(want), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_the_current_object_is_read_and_kept() {
    let (server, mut requests) = told();
    let other = async {
        patched(&mut requests).await.fail(409, "Conflict");
        asked(&mut requests).await.answer(200, &json_of(&pod("1", 9, "Running")));
        let call = patched(&mut requests).await;
        assert_eq!(call.body["status"], json!({ "phase": "Failed" }));
        call.answer(200, &json_of(&pod("1", 10, "Failed")));
    };
    let (published, ()) = futures::join!(publish(&server, "Failed"), other);
    published.unwrap();
}

#[tokio::test(start_paused = true)]
async fn responses_become_the_right_errors() {
    let rows = [
        (404, "NotFound", "gone"),
        (403, "Forbidden", "refused"),
        (500, "InternalError", "unavailable"),
        (503, "ServiceUnavailable", "unavailable"),
    ];
    for (code, reason, want) in rows {
        let (server, mut requests) = told();
        let other = async { patched(&mut requests).await.fail(code, reason) };
        let (published, ()) = futures::join!(publish(&server, "Running"), other);
        let kind = match published.unwrap_err() {
            ClusterError::Gone { .. } => "gone",
            ClusterError::Refused { .. } => "refused",
            ClusterError::Unavailable { .. } => "unavailable",
            ClusterError::Busy { .. } => "busy",
        };
        assert_eq!(kind, want, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_passed_on() {
    let (server, mut requests) = told();
    let other = async { patched(&mut requests).await.busy(7) };
    let (published, ()) = futures::join!(publish(&server, "Running"), other);
    let Err(ClusterError::Busy { wait, .. }) = published else { panic!("{published:?}") };
    assert_eq!(wait, Duration::from_secs(7));
    let other =
        async { patched(&mut requests).await.answer(200, &json_of(&pod("1", 6, "Running"))) };
    let again = publish(&server, "Running");
    let (published, ()) = futures::join!(again, other);
    published.expect("it did nothing, so that nothing is in doubt");
}

#[tokio::test(start_paused = true)]
async fn after_a_write_without_response_the_object_is_read_before_a_retry() {
    let (server, mut requests) = told();
    let first = publish(&server, "Running");
    let given_up = tokio::time::timeout(Duration::from_secs(10), first);
    let (given_up, kept) = futures::join!(given_up, requests.next());
    assert!(given_up.is_err());
    drop(kept);
    let other = async { asked(&mut requests).await.answer(200, &json_of(&pod("1", 6, "Running"))) };
    let (published, ()) = futures::join!(publish(&server, "Running"), other);
    published.unwrap();
    assert!(requests.none_within(Duration::from_secs(1)).await, "it had been done");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_deleted_at_once_with_its_uid_as_precondition() {
    let rows = [(200, "", Ok(())), (404, "NotFound", Err(())), (409, "Conflict", Err(()))];
    for (code, reason, want) in rows {
        let (server, mut requests) = told();
        let other = async {
            let call = requests.next().await;
            assert_eq!((&call.method, &*call.path), (&Method::DELETE, PATH));
            assert_eq!(call.body["gracePeriodSeconds"], 0);
            assert_eq!(call.body["preconditions"], json!({ "uid": "1" }));
            if reason.is_empty() {
                call.answer(code, &json_of(&pod("1", 9, "Failed")));
            } else {
                call.fail(code, reason);
            }
        };
        let (deleted, ()) = futures::join!(delete(&server), other);
        let want = want.map_err(|()| ClusterError::Gone { object: "pod web-1_default".to_owned() });
        assert_eq!(deleted, want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_mirror_that_is_there_already_is_left_alone() {
    let (server, mut requests) = told();
    for (code, reason) in [(201, ""), (409, "AlreadyExists")] {
        let other = async {
            let call = requests.next().await;
            assert_eq!(
                (&call.method, &*call.path),
                (&Method::POST, "/api/v1/namespaces/default/pods")
            );
            if reason.is_empty() {
                call.answer(code, &json_of(&pod("1", 9, "Pending")));
            } else {
                call.fail(code, reason);
            }
        };
        let mirror = pod("1", 0, "Pending");
        let (reflected, ()) = futures::join!(server.create_mirror_pod(&mirror), other);
        reflected.unwrap();
    }
}
