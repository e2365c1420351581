//! A StatefulSet on directories of the node.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, is_ready};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images;
use serde_json::{Value, json};

const REPLICAS: usize = 3;
/// Writes its name down at every start.
const SCRIPT: &str =
    "echo $HOSTNAME >> /data/starts; trap 'exit 0' TERM; while true; do sleep 0.1; done";

pub(super) async fn a_stateful_set_on_local_volumes_keeps_its_data_over_restarts_of_the_node(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    let disks = cx.scratch();
    cluster.apply(&storage_class()).await?;
    for number in 0..REPLICAS {
        let path = disks.join(format!("disk-{number}"));
        fs::create_dir(&path)?;
        cluster.apply(&local_volume(number, &path, cluster.agent.name())).await?;
    }
    cluster.apply(&stateful_set()).await?;
    cluster.wait_until_ready(REPLICAS).await?;
    ensure!(
        starts(&disks)? == [("db-0", 1), ("db-1", 1), ("db-2", 1)].map(owned),
        "{:?}",
        starts(&disks)?
    );
    replace(&cluster, "db-0").await?;
    cluster.agent.kill()?;
    cluster.agent.start()?;
    replace(&cluster, "db-1").await?;
    let expected = [("db-0", 2), ("db-1", 2), ("db-2", 1)].map(owned);
    ensure!(starts(&disks)? == expected, "{:?}", starts(&disks)?);
    let mut expected = expected;
    for _ in 0..2 {
        reboot(cx, &cluster).await?;
        expected.iter_mut().for_each(|(_, starts)| *starts += 1);
        let look = async || starts(&disks);
        let what = "each pod is started once more, on its own disk";
        eventually(MAX_WAIT, what, look, |starts| *starts == expected).await?;
        cluster.wait_until_ready(REPLICAS).await?;
    }
    cluster.kubectl(&["delete", "statefulset", "db"]).await?;
    cluster.kubectl(&["delete", "pod", "--all", "--wait=true"]).await?;
    let mounts = format!("/proc/{}/mountinfo", cluster.agent.pid()?);
    let mounted = async || Ok(fs::read_to_string(&mounts)?);
    let is_gone = |mounts: &String| !mounts.contains("local-volume");
    eventually(MAX_WAIT, "nothing is mounted any more", mounted, is_gone).await?;
    ensure!(starts(&disks)? == expected, "the data stay: {:?}", starts(&disks)?);
    let claims = ["delete", "pvc", "--all", "--wait=false"];
    cluster.kubectl(&claims).await?;
    cluster.kubectl(&["delete", "pv", "--all", "--wait=false"]).await?;
    cx.rig().settle_after_reboot().await
}

/// The machine loses its power, and with it all that runs and is mounted; then the runtime and the agent start.
async fn reboot(cx: &ScenarioContext, cluster: &TestCluster) -> Result<()> {
    cluster.agent.kill()?;
    cx.rig().reboot().await?;
    let mounted = fs::read_to_string("/proc/self/mountinfo")?;
    ensure!(!mounted.contains("local-volume"), "something is still mounted: {mounted}");
    cluster.agent.start()
}

/// Deletes a pod, and waits for the one that the StatefulSet puts in its place.
async fn replace(cluster: &TestCluster, pod: &str) -> Result<()> {
    let before = cluster.pod(pod).await?["metadata"]["uid"].clone();
    cluster.kubectl(&["delete", "pod", pod, "--wait=false"]).await?;
    let look = async || cluster.pods().await;
    let is_new = |pods: &Vec<Value>| {
        let named = pods.iter().find(|it| it["metadata"]["name"] == pod);
        named.is_some_and(|it| is_ready(it) && it["metadata"]["uid"] != before)
    };
    eventually(MAX_WAIT, &format!("another {pod} is Ready"), look, is_new).await.map(drop)
}

fn owned((name, count): (&str, usize)) -> (String, usize) {
    (name.to_owned(), count)
}

/// Which pod has started how often on each disk, by pod.
fn starts(disks: &Path) -> Result<Vec<(String, usize)>> {
    let mut found = Vec::new();
    for number in 0..REPLICAS {
        let text = fs::read_to_string(disks.join(format!("disk-{number}/starts")))?;
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.first().copied().unwrap_or_default().to_owned();
        ensure!(lines.iter().all(|line| *line == first), "two pods on one disk: {lines:?}");
        found.push((first, lines.len()));
    }
    found.sort();
    Ok(found)
}

fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": "disks" },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    })
}

fn local_volume(number: usize, path: &Path, node: &str) -> Value {
    let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
    let affinity = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } });
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": format!("disk-{number}") },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "disks",
            "local": { "path": path },
            "nodeAffinity": affinity,
        },
    })
}

fn stateful_set() -> Value {
    let labels = json!({ "app": "db" });
    let mounts = json!([{ "name": "data", "mountPath": "/data" }]);
    let container = json!({
        "name": "main",
        "image": images::BUSYBOX,
        "command": ["sh", "-c", SCRIPT],
        "volumeMounts": mounts,
    });
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disks",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": "db" },
        "spec": {
            "serviceName": "db",
            "replicas": REPLICAS,
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "terminationGracePeriodSeconds": 1, "containers": [container] },
            },
            "volumeClaimTemplates": [claim],
        },
    })
}
