//! The stream of pods: when it sends a set, and which failures it survives.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::api::testing::{self, TestRequests, Watching, failure, pod};

/// The stream of a node's pods, and the other end.
fn stream() -> (PodSets, TestRequests) {
    let (client, requests) = testing::client();
    (sets(Api::all(client), "n1", Arc::default()), requests)
}

/// Waits for the next set while the other side does its part.
async fn names(stream: &mut PodSets) -> Vec<String> {
    let set = tokio::time::timeout(Duration::from_secs(120), stream.next()).await;
    let set = set.expect("a set within two minutes").expect("the stream is endless");
    set.iter().filter_map(|pod| pod.metadata.name.clone()).collect()
}

/// Whether no set is sent for this long.
async fn nothing_runs(stream: &mut PodSets, time: Duration) -> bool {
    tokio::time::timeout(time, stream.next()).await.is_err()
}

/// A stream that has told of pod 1 as of version 10, and its watch.
async fn begun() -> (PodSets, TestRequests, Watching) {
    let (mut stream, mut requests) = stream();
    let other = async {
        let watch = requests.next().await.stream();
        watch.tell("ADDED", &pod("1", 5, "Running"));
        watch.end_of_list(10);
        watch
    };
    let (set, watch) = futures::join!(names(&mut stream), other);
    assert_eq!(set, ["web-1"]);
    (stream, requests, watch)
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_is_reported_when_complete() {
    let (mut stream, mut requests) = stream();
    let call = tokio::select! {
        set = stream.next() => panic!("{set:?} before anything was asked for"),
        call = requests.next() => call,
    };
    assert_eq!(call.path, "/api/v1/pods");
    for part in ["fieldSelector=spec.nodeName%3Dn1", "sendInitialEvents=true", "watch=true"] {
        assert!(call.query.contains(part), "{part} is in {}", call.query);
    }
    let watch = call.stream();
    watch.tell("ADDED", &pod("1", 5, "Running"));
    watch.tell("ADDED", &pod("2", 6, "Pending"));
    assert!(nothing_runs(&mut stream, Duration::from_secs(1)).await, "more may come");
    watch.end_of_list(10);
    assert_eq!(names(&mut stream).await, ["web-1", "web-2"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_reported() {
    let (mut stream, mut requests) = stream();
    let other = async {
        let watch = requests.next().await.stream();
        watch.end_of_list(10);
        watch
    };
    let (set, _watch) = futures::join!(names(&mut stream), other);
    assert_eq!(set, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn changes_are_batched() {
    let (mut stream, _calls, watch) = begun().await;
    for uid in 2..=100_u64 {
        watch.tell("ADDED", &pod(&uid.to_string(), 10 + uid, "Pending"));
    }
    assert_eq!(names(&mut stream).await.len(), 100);
    watch.tell("DELETED", &pod("7", 200, "Pending"));
    assert_eq!(names(&mut stream).await.len(), 99);
    watch.tell(
        "BOOKMARK",
        &json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "resourceVersion": "300" } }),
    );
    assert!(nothing_runs(&mut stream, Duration::from_secs(1)).await, "nothing changed");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_resumed_where_it_was_without_a_list() {
    let (mut stream, mut requests, watch) = begun().await;
    watch.tell(
        "BOOKMARK",
        &json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "resourceVersion": "77" } }),
    );
    assert!(nothing_runs(&mut stream, Duration::from_secs(15)).await);
    drop(watch);
    let other = async {
        let call = requests.next().await;
        assert!(call.query.contains("resourceVersion=77"), "{}", call.query);
        assert!(!call.query.contains("sendInitialEvents"), "{}", call.query);
        let watch = call.stream();
        watch.tell("ADDED", &pod("2", 80, "Pending"));
        watch
    };
    let (set, _watch) = futures::join!(names(&mut stream), other);
    assert_eq!(set, ["web-1", "web-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_died_silently_is_renewed_before_the_lease_runs_out() {
    let (mut stream, mut requests, watch) = begun().await;
    let since = tokio::time::Instant::now();
    let other = async {
        let call = requests.next().await;
        assert!(since.elapsed() <= Duration::from_secs(30), "{:?}", since.elapsed());
        assert!(watch.is_left());
        let next = call.stream();
        next.tell("DELETED", &pod("1", 80, "Failed"));
        next
    };
    let (set, _next) = futures::join!(names(&mut stream), other);
    assert_eq!(set, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_causes_a_new_list() {
    let (mut stream, mut requests, watch) = begun().await;
    watch.tell("ERROR", &failure(410, "Expired"));
    let other = async {
        let call = requests.next().await;
        assert!(call.query.contains("sendInitialEvents=true"), "{}", call.query);
        let watch = call.stream();
        watch.tell("ADDED", &pod("2", 90, "Pending"));
        watch.end_of_list(100);
        drop(watch);
        // The same as an answer to the call.
        requests.next().await.fail(410, "Expired");
        let call = requests.next().await;
        assert!(call.query.contains("sendInitialEvents=true"), "{}", call.query);
        let watch = call.stream();
        watch.end_of_list(200);
        watch
    };
    let sets = async { [names(&mut stream).await, names(&mut stream).await] };
    let (sets, _watch) = futures::join!(sets, other);
    assert_eq!(sets, [vec!["web-2".to_owned()], Vec::new()]);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_api_server_is_retried_and_no_change_is_lost() {
    let (mut stream, mut requests, watch) = begun().await;
    watch.break_off();
    let since = tokio::time::Instant::now();
    let other = async {
        for _ in 0..20 {
            drop(requests.next().await);
        }
        let call = requests.next().await;
        assert!(call.query.contains("resourceVersion=10"), "{}", call.query);
        let watch = call.stream();
        watch.tell("MODIFIED", &pod("1", 80, "Failed"));
        watch
    };
    tokio::pin!(other);
    let next = async { stream.next().await };
    let (set, _watch) = futures::join!(next, other);
    assert_eq!(set.unwrap().len(), 1);
    let waited = since.elapsed();
    assert!(waited > Duration::from_secs(60), "twenty tries take a while: {waited:?}");
    assert!(waited < Duration::from_secs(20 * 10), "and each comes soon enough: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_begins_is_given_up() {
    let (mut stream, mut requests, watch) = begun().await;
    drop(watch);
    let other = async {
        let hangs = requests.next().await;
        let watch = requests.next().await.stream();
        watch.tell("ADDED", &pod("2", 80, "Pending"));
        (hangs, watch)
    };
    let (set, _kept) = futures::join!(names(&mut stream), other);
    assert_eq!(set, ["web-1", "web-2"]);
}

#[tokio::test(start_paused = true)]
async fn where_lists_are_not_streamed_they_are_read_in_pages() {
    let (mut stream, mut requests) = stream();
    let list = |pods: Vec<Pod>, next: &str| json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "50", "continue": next }, "items": pods });
    let other = async {
        requests.next().await.fail(422, "Invalid");
        let call = requests.next().await;
        assert!(
            call.query.contains("limit=500") && !call.query.contains("watch"),
            "{}",
            call.query
        );
        call.answer(200, &list(vec![pod("1", 5, "Running")], "more"));
        let call = requests.next().await;
        assert!(call.query.contains("continue=more"), "{}", call.query);
        call.answer(200, &list(vec![pod("2", 6, "Running")], ""));
        let call = requests.next().await;
        assert!(call.query.contains("resourceVersion=50"), "{}", call.query);
        let watch = call.stream();
        watch.tell("DELETED", &pod("1", 60, "Running"));
        watch
    };
    let sets = async { [names(&mut stream).await, names(&mut stream).await] };
    let (sets, _watch) = futures::join!(sets, other);
    assert_eq!(sets[0], ["web-1", "web-2"]);
    assert_eq!(sets[1], ["web-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_to_stream_a_list_is_asked_for_pages_and_for_a_stream_the_next_time() {
    let (mut stream, mut requests) = stream();
    let list = json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "50" }, "items": [pod("1", 5, "Running")] });
    let pages = async |call: testing::TestRequest| {
        assert!(call.query.contains("limit=500"), "{}", call.query);
        call.answer(200, &list);
    };
    let other = async {
        // Where its store is too old, the refusal may come as an answer or as the first word of the stream.
        requests.next().await.fail(500, "InternalError");
        pages(requests.next().await).await;
        requests.next().await.stream().tell("ERROR", &failure(410, "Expired"));
        let call = requests.next().await;
        assert!(call.query.contains("sendInitialEvents=true"), "{}", call.query);
        call.stream().tell("ERROR", &failure(500, "InternalError"));
        pages(requests.next().await).await;
    };
    let sets = async { [names(&mut stream).await, names(&mut stream).await] };
    let (sets, ()) = futures::join!(sets, other);
    assert_eq!(sets, [vec!["web-1".to_owned()], vec!["web-1".to_owned()]]);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_asked_for_pages() {
    let (mut stream, mut requests) = stream();
    let other = async {
        // It sends changes only, and never the end of a list.
        let silent = requests.next().await.stream();
        let call = requests.next().await;
        assert!(call.query.contains("limit=500"), "{}", call.query);
        let list = json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "50" }, "items": [] });
        call.answer(200, &list);
        silent
    };
    let (set, _silent) = futures::join!(names(&mut stream), other);
    assert_eq!(set, [""; 0]);
}
