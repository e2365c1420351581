//! The bench's requests to the API server, which decode no more of objects than is needed.

use anyhow::{Context, Result, ensure};
use kube::Client;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

/// The namespace of all pods of the bench.
pub(super) const NAMESPACE: &str = "bench";
/// How long the controllers may take to set up a namespace.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A client of the bench's namespace.
#[derive(Clone)]
pub(super) struct BenchApi {
    client: Client,
}

impl BenchApi {
    /// Creates the namespace, with the objects of pods' volumes.
    pub(super) async fn open(client: Client) -> Result<Self> {
        let api = Self { client };
        api.create("/api/v1/namespaces", &object("Namespace", NAMESPACE)).await?;
        let mut config_map = object("ConfigMap", "bench");
        config_map["data"] = json!({ "colour": "blue" });
        api.create(&path("configmaps"), &config_map).await?;
        let mut secret = object("Secret", "bench");
        secret["stringData"] = json!({ "password": "none" });
        api.create(&path("secrets"), &secret).await?;
        // Pods that need a token are refused until the service account exists.
        let account =
            Request::new(path("serviceaccounts")).get("default", &GetParams::default())?;
        let began = Instant::now();
        while api.client.request::<Value>(account.clone()).await.is_err() {
            ensure!(began.elapsed() < NAMESPACE_TIMEOUT, "the namespace has no service account");
            sleep(POLL_INTERVAL).await;
        }
        Ok(api)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) async fn create_pod(&self, pod: &Value) -> Result<()> {
        self.create(&path("pods"), pod).await
    }

    /// Deletes a pod as a user does: the agent has to stop it first.
    pub(super) async fn delete_pod(&self, name: &str) -> Result<()> {
        self.delete(&path("pods"), name, &DeleteParams::default()).await
    }

    /// Deletes a pod as an agent does that has stopped it.
    pub(super) async fn finish_pod(&self, name: &str) -> Result<()> {
        self.delete(&path("pods"), name, &DeleteParams::default().grace_period(0)).await
    }

    /// Writes a pod's status as an agent does.
    pub(super) async fn patch_status(&self, name: &str, status: &Value) -> Result<()> {
        let patch = Patch::Strategic(json!({ "status": status }));
        let parameters = PatchParams::default();
        let request =
            Request::new(path("pods")).patch_subresource("status", name, &parameters, &patch)?;
        self.client.request::<Value>(request).await.with_context(|| format!("patching {name}"))?;
        Ok(())
    }

    /// Creates an event of a pod as an agent does.
    pub(super) async fn create_event(&self, pod: &str, reason: &str) -> Result<()> {
        let mut event = object("Event", &format!("{pod}.{}", reason.to_lowercase()));
        event["involvedObject"] =
            json!({ "kind": "Pod", "apiVersion": "v1", "namespace": NAMESPACE, "name": pod });
        event["reason"] = json!(reason);
        event["message"] = json!("the message of an event is about as long as this");
        event["type"] = json!("Normal");
        self.create(&path("events"), &event).await
    }

    /// Requests a token for a pod as an agent does.
    pub(super) async fn request_token(&self) -> Result<()> {
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": { "name": "default" },
            "spec": { "expirationSeconds": 3607 },
        });
        self.create(&path("serviceaccounts/default/token"), &request).await
    }

    /// The resource version of the list of pods, at which a watch begins.
    pub(super) async fn version(&self) -> Result<String> {
        let request = Request::new(path("pods")).list(&ListParams::default())?;
        let list: Value = self.client.request(request).await?;
        let version = list["metadata"]["resourceVersion"].as_str();
        version.map(ToOwned::to_owned).context("a list without a version")
    }

    /// Creates a node without an agent, for pods of the runtime alone.
    pub(super) async fn create_node(&self, name: &str) -> Result<()> {
        self.create("/api/v1/nodes", &object("Node", name)).await
    }

    pub(super) async fn delete_node(&self, name: &str) -> Result<()> {
        self.delete("/api/v1/nodes", name, &DeleteParams::default()).await
    }

    /// Waits until the node is Ready, and returns when that was seen.
    pub(super) async fn until_ready(&self, node: &str, max_wait: Duration) -> Result<Instant> {
        let request = Request::new("/api/v1/nodes").get(node, &GetParams::default())?;
        let began = Instant::now();
        loop {
            if let Ok(node) = self.client.request::<Value>(request.clone()).await
                && is_ready(&node)
            {
                return Ok(Instant::now());
            }
            ensure!(began.elapsed() < max_wait, "the node is not Ready after {max_wait:?}");
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn create(&self, path: &str, object: &Value) -> Result<()> {
        let body = serde_json::to_vec(object)?;
        let request = Request::new(path).create(&PostParams::default(), body)?;
        let asked = self.client.request::<Value>(request).await;
        asked.map(drop).with_context(|| format!("creating {}", object["metadata"]["name"]))
    }

    async fn delete(&self, path: &str, name: &str, how: &DeleteParams) -> Result<()> {
        let request = Request::new(path).delete(name, how)?;
        let asked = self.client.request::<Value>(request).await;
        asked.map(drop).with_context(|| format!("deleting {name}"))
    }
}

/// The path of a kind of objects in the namespace.
pub(super) fn path(kind: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{kind}")
}

fn object(kind: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name } })
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let is = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is))
}
