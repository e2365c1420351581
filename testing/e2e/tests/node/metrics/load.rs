//! The known load: pods of which the test knows what each adds to the numbers.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, long_running_pod};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{ContainerManifest, PodManifest, image, pod, script_container};
use oarsman_e2e::scenario::{ScenarioContext, flavours};
use oarsman_rig::{ContainerdFlavour, images};
use serde_json::{Value, json};

use super::plugins::REGISTRY;

pub(super) const CLAIM: &str = "data";
pub(super) const MEMORY_LIMIT: f64 = (64 << 20) as f64;
/// What ends with this code.
pub(super) const EXIT_CODE: &str = "3";

/// What was run, by what became of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownLoad {
    /// Pods that run, each with one container.
    pub(super) running: f64,
    /// Pods of which one container ran and has ended.
    pub(super) ended: f64,
    /// Pods that were deleted while they ran.
    pub(super) deleted: f64,
    /// Pods with a sandbox, and a container that cannot be started.
    pub(super) stuck: f64,
    /// Pods that the node did not admit.
    pub(super) rejected: f64,
    /// Images that containers mount.
    pub(super) image_volumes: f64,
}

impl KnownLoad {
    /// Pods that were admitted, each with one sandbox and one container.
    pub(super) fn admitted(&self) -> f64 {
        self.started() + self.stuck
    }

    /// Containers that were started.
    pub(super) fn started(&self) -> f64 {
        self.running + self.ended + self.deleted
    }
}

/// Runs all of it, and waits until each pod is what it should be.
pub(super) async fn run(cx: &ScenarioContext, cluster: &TestCluster) -> Result<KnownLoad> {
    let has_image_volumes = flavours() != [ContainerdFlavour::Debian];
    let mut ready = vec![long_running_pod("plain-1"), probed(), measured(), claimed()];
    ready.extend(has_image_volumes.then(with_image));
    add_disk(cluster, &cx.scratch().join("disk")).await?;
    for manifest in &ready {
        cluster.run(manifest).await?;
    }
    cluster.run(&hooked()).await?;
    cluster.wait_until_ready(ready.len() + 1).await?;
    cluster.kubectl(&["delete", "pod", "hooked", "--grace-period=2", "--wait=true"]).await?;
    cluster.run(&rejected(cluster.agent.name())).await?;
    cluster.run(&ended()).await?;
    cluster.run(&stuck()).await?;
    until(cluster, "rejected", |pod| pod["status"]["reason"] == "OutOfcpu").await?;
    until(cluster, "ended", |pod| pod["status"]["phase"] == "Failed").await?;
    until(cluster, "stuck", |pod| waits_for(pod, "ImagePullBackOff")).await?;
    cluster.wait_until_ready(ready.len()).await?;
    Ok(KnownLoad {
        running: ready.len() as f64,
        ended: 1.0,
        deleted: 1.0,
        stuck: 1.0,
        rejected: 1.0,
        image_volumes: f64::from(u8::from(has_image_volumes)),
    })
}

async fn until(cluster: &TestCluster, name: &str, is_met: impl Fn(&Value) -> bool) -> Result<()> {
    let look = async || cluster.pod(name).await;
    eventually(MAX_WAIT, &format!("{name} is as it should be"), look, |pod| is_met(pod)).await?;
    Ok(())
}

fn waits_for(pod: &Value, reason: &str) -> bool {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
}

fn sleeping() -> ContainerManifest {
    image("main", images::BUSYBOX).with("command", json!(["sleep", "100000"]))
}

/// A pod whose container counts its probes.
fn probed() -> PodManifest {
    let mut probe = json!({ "exec": { "command": ["sh", "-c", "echo asked >> /count"] } });
    probe["periodSeconds"] = json!(1);
    // A busy machine may be slow, and no failure may restart the container, which would lose its count.
    probe["timeoutSeconds"] = json!(30);
    probe["failureThreshold"] = json!(1000);
    let main = sleeping().with("livenessProbe", probe);
    pod("probed").with("terminationGracePeriodSeconds", 1).container(main)
}

/// A pod with limits that it reaches.
fn measured() -> PodManifest {
    let limits = json!({ "limits": { "cpu": "200m", "memory": "64Mi" } });
    let main = image("burner", images::BUSYBOX)
        .with("command", json!(["sh", "-c", "while :; do :; done"]))
        .with("resources", limits);
    pod("measured").with("terminationGracePeriodSeconds", 1).container(main)
}

fn claimed() -> PodManifest {
    let claim = json!({ "name": "disk", "persistentVolumeClaim": { "claimName": CLAIM } });
    pod("claimed")
        .with("terminationGracePeriodSeconds", 1)
        .add("volumes", claim)
        .container(sleeping().mount("disk", "/data"))
}

fn with_image() -> PodManifest {
    let source = json!({ "reference": images::SCRIPT, "pullPolicy": "IfNotPresent" });
    pod("with-image")
        .with("terminationGracePeriodSeconds", 1)
        .add("volumes", json!({ "name": "files", "image": source }))
        .container(sleeping().mount("files", "/files"))
}

/// A pod whose hook sleeps for longer than it may.
fn hooked() -> PodManifest {
    let hook = json!({ "preStop": { "sleep": { "seconds": 600 } } });
    let main = script_container("main", &["forever"]).with("lifecycle", hook);
    pod("hooked").with("terminationGracePeriodSeconds", 700).container(main)
}

fn rejected(node: &str) -> PodManifest {
    let main = script_container("main", &["forever"])
        .with("resources", json!({ "requests": { "cpu": "4k" } }));
    // The scheduler would not send it here.
    pod("rejected").with("nodeName", node).container(main)
}

fn ended() -> PodManifest {
    let main = image("main", images::BUSYBOX)
        .with("command", json!(["sh", "-c", format!("exit {EXIT_CODE}")]));
    pod("ended").with("restartPolicy", "Never").container(main)
}

fn stuck() -> PodManifest {
    let main = image("main", &format!("{REGISTRY}/nothing:1"))
        .with("imagePullPolicy", json!("IfNotPresent"));
    pod("stuck").with("terminationGracePeriodSeconds", 1).container(main)
}

/// A directory of the node as a persistent volume, with a claim that is bound to it.
async fn add_disk(cluster: &TestCluster, path: &Path) -> Result<()> {
    fs::create_dir_all(path)?;
    fs::write(path.join("file"), "kept")?;
    let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [cluster.agent.name()] });
    let affinity = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "disk" },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain", "local": { "path": path }, "nodeAffinity": affinity,
            "claimRef": { "namespace": "default", "name": CLAIM },
        },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": CLAIM },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "disk",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    cluster.apply(&volume).await?;
    cluster.apply(&claim).await?;
    let look = async || cluster.plane.admin().json(&["get", "pvc", CLAIM]).await;
    let bound = eventually(MAX_WAIT, "the claim is bound", look, |claim| {
        claim["status"]["phase"] == "Bound"
    });
    let bound = bound.await?;
    ensure!(bound["spec"]["volumeName"] == "disk", "{bound:#}");
    Ok(())
}

/// Removes what no pod owns.
pub(super) async fn remove_disk(cluster: &TestCluster) -> Result<()> {
    cluster.kubectl(&["delete", "pod", "--all", "--wait=true"]).await?;
    cluster.kubectl(&["delete", "pvc", CLAIM, "--wait=false"]).await?;
    cluster.kubectl(&["delete", "pv", "disk", "--wait=false"]).await.map(drop)
}
