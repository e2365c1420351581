//! ConfigMaps, Secrets and runtime classes: found, changed, lost sight of and given up.

use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::references::{ObjectKind, ObjectName};

use super::*;
use crate::ClusterError;

const MAPS: &str = "/api/v1/namespaces/ns/configmaps";

/// A server that has the ConfigMap `m`.
fn with_a_map(says: &str) -> FakeApiServer {
    let server = FakeApiServer::default();
    server.put(MAPS, map(says));
    server
}

/// That `m` is not what it was.
fn change() -> ObjectChange {
    let name = FullName { name: "m".to_owned(), namespace: "ns".to_owned() };
    ObjectName { kind: ObjectKind::ConfigMap, name }.into()
}

/// What was asked about ConfigMaps.
fn about_maps(server: &FakeApiServer) -> Vec<String> {
    server.log().into_iter().filter(|asked| asked.contains("configmaps")).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_lookup_lists_and_watches_and_the_next_use_the_cache() {
    let server = with_a_map("hello");
    let objects = objects(&server);
    let mut changes = objects.changes();
    for uid in ["a", "b", "a"] {
        assert_eq!(says(&objects, &with_map(uid)).await.as_deref(), Some("hello"));
    }
    run_ready_tasks().await;
    let once = ["list namespaces/ns/configmaps m", "watch namespaces/ns/configmaps m"];
    assert_eq!(about_maps(&server), once);
    assert_eq!(told(&mut changes).await, [], "who waited for the answer needs not be told");
}

#[tokio::test(start_paused = true)]
async fn a_missing_object_is_an_answer_and_its_creation_is_reported() {
    let server = FakeApiServer::default();
    let objects = objects(&server);
    let mut changes = objects.changes();
    assert_eq!(says(&objects, &with_map("a")).await, None);
    server.put(MAPS, map("here"));
    assert_eq!(told(&mut changes).await, [change()]);
    assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some("here"));
    server.put(MAPS, map("new"));
    assert_eq!(told(&mut changes).await, [change()]);
    assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some("new"));
    server.put(MAPS, map("new"));
    assert_eq!(told(&mut changes).await, [], "nothing but its version has changed");
    server.remove(MAPS, "m");
    assert_eq!(told(&mut changes).await, [change()]);
    assert_eq!(says(&objects, &with_map("a")).await, None);
}

#[tokio::test(start_paused = true)]
async fn while_the_server_is_away_cached_objects_are_used_and_missed_changes_are_reported_later() {
    let server = with_a_map("old");
    let objects = objects(&server);
    let mut changes = objects.changes();
    says(&objects, &with_map("a")).await;
    server.fail_with(503);
    server.cut();
    seconds(600).await;
    assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some("old"));
    assert_eq!(says(&objects, &with_map("new")).await.as_deref(), Some("old"));
    server.recover();
    seconds(60).await;
    server.log();
    server.outdate();
    run_ready_tasks().await;
    server.put(MAPS, map("new"));
    seconds(60).await;
    assert_eq!(told(&mut changes).await, [change()]);
    assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some("new"));
    let relisted = about_maps(&server);
    assert!(relisted.contains(&"list namespaces/ns/configmaps m".to_owned()), "{relisted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_temporary_refusal_is_retried() {
    let server = with_a_map("hello");
    server.fail_with(403);
    let objects = objects(&server);
    let pod = with_map("a");
    let granted = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.recover();
    };
    let (found, ()) = futures::join!(objects.lookup(&pod), granted);
    assert_eq!(found.unwrap().config_maps.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lasting_refusal_is_reported_after_a_while_and_then_at_once() {
    let server = with_a_map("hello");
    server.fail_with(403);
    let objects = objects(&server);
    let mut changes = objects.changes();
    let began = tokio::time::Instant::now();
    let refused = objects.lookup(&with_map("a")).await.unwrap_err();
    let why = "the API server refused list of configmap ns/m: the answer is 403";
    assert_eq!(refused.to_string(), why);
    assert_eq!(began.elapsed().as_secs(), 3);
    objects.lookup(&with_map("a")).await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 3);
    server.recover();
    seconds(60).await;
    assert_eq!(told(&mut changes).await, [change()]);
    assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some("hello"));
}

#[tokio::test(start_paused = true)]
async fn immutable_objects_are_not_watched() {
    let server = FakeApiServer::default();
    let mut fixed = map("fixed");
    fixed["immutable"] = json!(true);
    server.put(MAPS, fixed);
    let objects = objects(&server);
    assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some("fixed"));
    seconds(600).await;
    assert_eq!(about_maps(&server), ["list namespaces/ns/configmaps m"]);
    assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some("fixed"));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_cached_until_no_pod_refers_to_it() {
    let server = with_a_map("hello");
    let objects = objects(&server);
    says(&objects, &with_map("a")).await;
    says(&objects, &with_map("b")).await;
    seconds(24 * 3600).await;
    objects.forget(&PodUid::from("a"));
    seconds(24 * 3600).await;
    assert_eq!(objects.config_maps.len(), 1, "a pod that was not synced for a day refers to it");

    objects.forget(&PodUid::from("b"));
    seconds(59).await;
    says(&objects, &with_map("c")).await;
    seconds(600).await;
    assert_eq!(objects.config_maps.len(), 1, "the next pod came in time");

    objects.forget(&PodUid::from("c"));
    let watchers = server.watchers();
    seconds(61).await;
    assert_eq!((objects.config_maps.len(), server.watchers()), (0, watchers - 1));
    server.log();
    assert_eq!(says(&objects, &with_map("d")).await.as_deref(), Some("hello"));
    assert_eq!(about_maps(&server)[0], "list namespaces/ns/configmaps m");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_changes_its_references_releases_the_old_ones() {
    let server = with_a_map("hello");
    let objects = objects(&server);
    says(&objects, &with_map("a")).await;
    objects.lookup(&pod("a", &json!([]))).await.unwrap();
    seconds(61).await;
    assert_eq!(objects.config_maps.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_change_detection_strategy_requests_at_its_own_rate() {
    for (freshness, at_once, after_a_minute) in
        [(Freshness::Cache, "old", "new"), (Freshness::Get, "new", "new")]
    {
        let server = with_a_map("old");
        let settings = ObjectSettings { freshness, ..ObjectSettings::default() };
        let objects = objects_with(&server, settings);
        let mut changes = objects.changes();
        assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some("old"));
        server.put(MAPS, map("new"));
        assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some(at_once), "{freshness:?}");
        seconds(61).await;
        assert_eq!(told(&mut changes).await, [change()], "{freshness:?}");
        assert_eq!(says(&objects, &with_map("a")).await.as_deref(), Some(after_a_minute));
        assert!(!server.log().iter().any(|asked| asked.starts_with("watch namespaces/ns/config")));
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_and_runtime_classes_are_found_too() {
    let server = FakeApiServer::default();
    let secret = json!({ "metadata": { "name": "s", "namespace": "ns" }, "type": "Opaque" });
    server.put("/api/v1/namespaces/ns/secrets", secret);
    let objects = objects(&server);
    let mut changes = objects.changes();
    let mut pod = pod("a", &json!([{ "name": "v", "secret": { "secretName": "s" } }]));
    pod.spec.as_mut().unwrap().runtime_class_name = Some("kata".to_owned());
    let found = objects.lookup(&pod).await.unwrap();
    assert_eq!((found.secrets.len(), found.runtime_classes.len()), (1, 0));

    let class = json!({ "metadata": { "name": "kata" }, "handler": "kata-qemu" });
    server.put("/apis/node.k8s.io/v1/runtimeclasses", class);
    assert_eq!(told(&mut changes).await, [ObjectChange::RuntimeClass("kata".to_owned())]);
    let found = objects.lookup(&pod).await.unwrap();
    assert_eq!(found.runtime_classes["kata"], "kata-qemu");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_an_error_in_time() {
    let silent = tower::service_fn(|_: hyper::http::Request<kube::client::Body>| {
        std::future::pending::<Result<hyper::http::Response<kube::client::Body>, tower::BoxError>>()
    });
    let client = kube::Client::new(silent, "default");
    let objects =
        ObjectManager::new(client, "n1", Arc::new(SystemClock::start()), ObjectSettings::default());
    let error = objects.lookup(&with_map("a")).await.unwrap_err();
    assert!(matches!(error, ClusterError::Unavailable { .. }), "{error}");
}

/// Row C16 of docs/security.md.
#[tokio::test(start_paused = true)]
async fn a_pod_that_refers_to_many_objects_asks_no_faster_than_the_rate_allows() {
    let server = FakeApiServer::default();
    let objects = objects(&server);
    let volume = |n: usize| {
        let source = json!({ "name": format!("m{n}"), "optional": true });
        json!({ "name": format!("v{n}"), "configMap": source })
    };
    let volumes: Vec<_> = (0..500).map(volume).collect();
    let pod = pod("a", &json!(volumes));
    objects.lookup(&pod).await.unwrap_err();
    // A hundred at once, and fifty in each of the three seconds that a lookup waits.
    let asked = server.log().len();
    assert!((100..=260).contains(&asked), "{asked}");
    seconds(60).await;
    assert_eq!(objects.lookup(&pod).await.unwrap().config_maps.len(), 0, "all are answered");
}
