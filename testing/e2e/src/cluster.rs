//! A cluster with one node, and the requests that scenarios send to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_rig::{ControlPlane, Implementation, Kubelet, KubeletOptions, images};
use serde_json::{Value, json};

use crate::inspect::eventually;
use crate::manifest::{ContainerManifest, PodManifest, pod, script_container};
use crate::pod_observer::PodObserver;
use crate::scenario::{ScenarioContext, under_test};

/// How long pods may take to reach a state on a machine that is busy with tests.
pub const MAX_WAIT: Duration = Duration::from_secs(90);

/// A control plane, and an agent that has joined it.
pub struct TestCluster {
    /// The control plane.
    pub plane: Arc<ControlPlane>,
    /// The agent that joined it first.
    pub agent: Arc<Kubelet>,
}

impl TestCluster {
    /// Starts both, and waits until the node is Ready.
    ///
    /// # Errors
    /// When it does not become so.
    pub async fn start(cx: &ScenarioContext) -> Result<Self> {
        Self::start_with(cx, &under_test()?).await
    }

    /// The same, with a given agent.
    ///
    /// # Errors
    /// When the node does not become Ready.
    pub async fn start_with(cx: &ScenarioContext, which: &Implementation) -> Result<Self> {
        cx.set_cleanup_timeout(MAX_WAIT * 2);
        let plane = cx.cluster().await?;
        let agent = cx.join(which, &KubeletOptions::default())?;
        agent.start()?;
        plane.until_node_is_ready(agent.name(), MAX_WAIT).await?;
        Ok(Self { plane, agent })
    }

    /// Runs kubectl as cluster administrator.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.plane.admin().run(arguments).await
    }

    /// Creates or changes an object.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        self.plane.admin().apply(object).await.map(drop)
    }

    /// Creates a pod.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn run(&self, manifest: &PodManifest) -> Result<()> {
        self.apply(&serde_json::from_str(&manifest.text())?).await
    }

    /// A pod as the API server has it.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn pod(&self, name: &str) -> Result<Value> {
        self.plane.admin().json(&["get", "pod", name]).await
    }

    /// Waits until that many pods are Ready.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn wait_until_ready(&self, count: usize) -> Result<BTreeSet<String>> {
        let all = async || Ok(self.pods().await?.iter().map(summary).collect::<Vec<_>>());
        let ready = |pods: &Vec<(String, String, bool)>| {
            pods.iter().filter(|(.., is_ready)| *is_ready).count() == count
        };
        let seen = eventually(MAX_WAIT, &format!("{count} pods are Ready"), all, ready).await?;
        Ok(seen.into_iter().filter(|pod| pod.2).map(|(name, ..)| name).collect())
    }

    /// All pods of the default namespace, as the API server has them.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn pods(&self) -> Result<Vec<Value>> {
        let pods = self.plane.admin().json(&["get", "pods"]).await?;
        Ok(pods["items"].as_array().context("a list has items")?.clone())
    }

    /// Checks that the agent works, by one more pod that becomes Ready.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn wait_until_agent_works(&self, name: &str) -> Result<()> {
        self.run(&long_running_pod(name)).await?;
        let look = async || Ok(summary(&self.pod(name).await?));
        let what = format!("{name} is Ready");
        eventually(MAX_WAIT, &what, look, |(.., is_ready)| *is_ready).await.map(drop)
    }

    /// Starts a watch of all pods.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn observe_pods(&self) -> Result<PodObserver> {
        PodObserver::begin(self.plane.client().await?).await
    }
}

/// A pod's name, its phase, and whether it is Ready.
pub fn summary(pod: &Value) -> (String, String, bool) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&pod["metadata"]["name"]), text(&pod["status"]["phase"]), is_ready(pod))
}

/// Whether a pod's Ready condition is True.
pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// A pod that runs until it is stopped.
pub fn long_running_pod(name: &str) -> PodManifest {
    pod(name)
        .with("terminationGracePeriodSeconds", 1)
        .container(script_container("main", &["forever"]))
}

/// A deployment of such pods.
pub fn deployment(name: &str, replicas: usize) -> Value {
    let labels = json!({ "app": name });
    let container = json!({ "name": "main", "image": images::SCRIPT, "args": ["forever"] });
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

/// How often each probe of [`probed`] is asked.
pub const PROBE_PERIOD: Duration = Duration::from_secs(2);

/// A deployment of pods with probes.
pub fn probed_deployment(name: &str, replicas: usize) -> Value {
    let mut deployment = deployment(name, replicas);
    let containers = &mut deployment["spec"]["template"]["spec"]["containers"];
    *containers = json!([probed("main").object()]);
    deployment
}

/// A container that has a probe of every kind and of every cheap handler. It prints a line for each readiness and liveness probe.
pub fn probed(name: &str) -> ContainerManifest {
    let probe = |handler: &str, action: Value| {
        let period = PROBE_PERIOD.as_secs();
        json!({ "periodSeconds": period, "timeoutSeconds": 2, handler: action })
    };
    let readiness = json!({ "port": 8080, "path": "/print/readiness" });
    script_container(name, &["listen:8080", "grpc:8081", "forever"])
        .with("startupProbe", probe("tcpSocket", json!({ "port": 8080 })))
        .with("livenessProbe", probe("grpc", json!({ "port": 8081, "service": "print" })))
        .with("readinessProbe", probe("httpGet", readiness))
}

/// The ids of all containers that run, by their pod's name.
pub type RunningContainers = BTreeMap<String, Vec<String>>;

/// The containers that run now.
///
/// # Errors
/// When containerd does not answer, or a pod has no sandbox.
pub async fn running(cx: &ScenarioContext) -> Result<RunningContainers> {
    let mut found = BTreeMap::new();
    for pod in cx.inspector().pods().await? {
        let running = pod.containers.iter().filter(|it| it.is_running());
        let mut ids: Vec<String> = running.map(|it| it.id.clone()).collect();
        ids.sort();
        found.insert(pod.sandbox()?.name.clone(), ids);
    }
    Ok(found)
}

/// Fails unless all containers that ran before still run, under the same ids.
///
/// # Errors
/// With the containers that have other ids.
pub fn ensure_same(before: &RunningContainers, now: &RunningContainers) -> Result<()> {
    for (pod, ids) in before {
        ensure!(now.get(pod) == Some(ids), "{pod} ran as {ids:?}, and now as {:?}", now.get(pod));
    }
    Ok(())
}
