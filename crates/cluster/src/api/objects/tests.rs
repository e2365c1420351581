//! Lookups against an API server in memory, in paused time: time advances when all tasks wait.

mod certificates;
mod claims;
mod objects;
mod panics;
mod provider_tokens;
mod server;
mod services;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use oarsman_clock::SystemClock;
use oarsman_core::references::ObjectChange;
use serde_json::{Value, json};

use super::{Freshness, ObjectManager, ObjectSettings};
use crate::ObjectChanges;
use server::FakeApiServer;

/// Objects of a server, as they are kept by watches.
fn objects(server: &FakeApiServer) -> ObjectManager {
    objects_with(server, ObjectSettings::default())
}

/// The same, kept in another way. The node is `n1`.
fn objects_with(server: &FakeApiServer, settings: ObjectSettings) -> ObjectManager {
    ObjectManager::new(server.client(), "n1", Arc::new(SystemClock::start()), settings)
}

/// A pod of namespace `ns` with these volumes, all mounted.
fn pod(uid: &str, volumes: &Value) -> Pod {
    let names = volumes.as_array().unwrap().iter().map(|volume| volume["name"].clone());
    let mounts: Vec<Value> = names.map(|name| json!({ "name": name, "mountPath": "/v" })).collect();
    let spec =
        json!({ "containers": [{ "name": "c", "volumeMounts": mounts }], "volumes": volumes });
    let metadata = json!({ "name": format!("web-{uid}"), "namespace": "ns", "uid": uid });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// A pod that mounts the ConfigMap `m`.
fn with_map(uid: &str) -> Pod {
    pod(uid, &json!([{ "name": "v", "configMap": { "name": "m" } }]))
}

/// The ConfigMap `m` that says so.
fn map(says: &str) -> Value {
    json!({ "metadata": { "name": "m", "namespace": "ns" }, "data": { "says": says } })
}

/// What a pod finds in its ConfigMap.
async fn says(objects: &ObjectManager, pod: &Pod) -> Option<String> {
    let found = objects.lookup(pod).await.unwrap();
    let map = found.config_maps.values().next()?;
    map.data.as_ref().and_then(|data| data.get("says")).cloned()
}

/// The changes so far.
async fn told(changes: &mut ObjectChanges) -> Vec<ObjectChange> {
    run_ready_tasks().await;
    let mut all = Vec::new();
    while let Some(change) = changes.next().now_or_never() {
        all.extend(change);
    }
    all
}

/// Runs all tasks that are ready, without a relevant advance of time.
async fn run_ready_tasks() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}
