//! A cluster with one node, and what scenarios ask of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_e2e::look::eventually;
use oarsman_e2e::manifest::{Manifest, actor, pod};
use oarsman_e2e::scenario::{Stage, under_test};
use oarsman_e2e::witness::Witness;
use oarsman_rig::{ControlPlane, Implementation, Kubelet, KubeletOptions, images};
use serde_json::{Value, json};

/// How long pods may take to be as they should be on a machine that is busy with tests.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// A control plane, and an agent that has joined it.
pub(super) struct Cluster {
    pub(super) plane: Arc<ControlPlane>,
    pub(super) agent: Arc<Kubelet>,
}

impl Cluster {
    /// Starts both, and waits until the node is Ready.
    pub(super) async fn start(stage: &Stage) -> Result<Self> {
        Self::start_with(stage, &under_test()?).await
    }

    pub(super) async fn start_with(stage: &Stage, which: &Implementation) -> Result<Self> {
        stage.allow(PATIENCE * 2);
        let plane = stage.cluster().await?;
        let agent = stage.join(which, &KubeletOptions::default())?;
        agent.start()?;
        plane.until_node_is_ready(agent.name(), PATIENCE).await?;
        Ok(Self { plane, agent })
    }

    /// Runs kubectl as somebody who may do everything.
    pub(super) async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.plane.admin().run(arguments).await
    }

    /// Creates or changes an object.
    pub(super) async fn apply(&self, object: &Value) -> Result<()> {
        self.plane.admin().apply(object).await.map(drop)
    }

    /// Creates a pod.
    pub(super) async fn run(&self, manifest: &Manifest) -> Result<()> {
        self.apply(&serde_json::from_str(&manifest.text())?).await
    }

    /// A pod as the API server has it.
    pub(super) async fn pod(&self, name: &str) -> Result<Value> {
        self.plane.admin().json(&["get", "pod", name]).await
    }

    /// Waits until that many pods are Ready.
    pub(super) async fn until_ready(&self, count: usize) -> Result<BTreeSet<String>> {
        let all = async || Ok(self.pods().await?.iter().map(in_short).collect::<Vec<_>>());
        let ready = |pods: &Vec<(String, String, bool)>| {
            pods.iter().filter(|(.., is_ready)| *is_ready).count() == count
        };
        let seen = eventually(PATIENCE, &format!("{count} pods are Ready"), all, ready).await?;
        Ok(seen.into_iter().filter(|pod| pod.2).map(|(name, ..)| name).collect())
    }

    /// All pods of the default namespace, as the API server has them.
    pub(super) async fn pods(&self) -> Result<Vec<Value>> {
        let pods = self.plane.admin().json(&["get", "pods"]).await?;
        Ok(pods["items"].as_array().context("a list has items")?.clone())
    }

    /// Shows that the agent is at work, by one more pod that becomes Ready.
    pub(super) async fn until_it_works(&self, name: &str) -> Result<()> {
        self.run(&lasting(name)).await?;
        let look = async || Ok(in_short(&self.pod(name).await?));
        let what = format!("{name} is Ready");
        eventually(PATIENCE, &what, look, |(.., is_ready)| *is_ready).await.map(drop)
    }

    /// Begins to watch.
    pub(super) async fn witness(&self) -> Result<Witness> {
        Witness::begin(self.plane.client().await?).await
    }
}

/// A pod's name, its phase, and whether it is Ready.
pub(super) fn in_short(pod: &Value) -> (String, String, bool) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&pod["metadata"]["name"]), text(&pod["status"]["phase"]), is_ready(pod))
}

/// Whether a pod's condition says so.
pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// A pod that lasts until it is asked to end.
pub(super) fn lasting(name: &str) -> Manifest {
    pod(name).with("terminationGracePeriodSeconds", 1).container(actor("main", &["forever"]))
}

/// A deployment of such pods.
pub(super) fn deployment(name: &str, replicas: usize) -> Value {
    let labels = json!({ "app": name });
    let container = json!({ "name": "main", "image": images::ACTOR, "args": ["forever"] });
    let spec = json!({ "terminationGracePeriodSeconds": 1, "containers": [container] });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    })
}
