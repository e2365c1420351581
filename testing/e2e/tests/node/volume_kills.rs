//! The agent is killed at random moments while pods with volumes of every kind are made and removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, is_ready, running};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_host::mounts;
use oarsman_rig::images;
use serde_json::{Value, json};
use tokio::time::sleep;

const KILLS: u32 = 20;
/// A pseudo-random sequence that is the same every time: milliseconds between a change and the kill.
const MOMENTS: [u64; 10] = [30, 900, 210, 1400, 480, 60, 1150, 330, 700, 1800];
/// A pod that is there from the beginning to the end.
const KEPT: &str = "kept";

pub(super) async fn the_agent_killed_twenty_times_among_volumes_leaks_and_deletes_nothing(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    let (host, disk) = (cx.scratch().join("host"), cx.scratch().join("disk"));
    for directory in [&host, &disk] {
        fs::create_dir_all(directory.join("part"))?;
        fs::write(directory.join("kept"), "precious\n")?;
    }
    create_objects(&cluster, &disk).await?;
    cluster.run(&pod_with_volumes(KEPT, &host)).await?;
    cluster.wait_until_ready(1).await?;
    let before = running(cx).await?;
    let own = directory_of(&cluster, KEPT).await?;
    let mounted = mounted_below(&own)?;
    let mut names = Vec::new();
    for round in 0..KILLS {
        change(&cluster, round, &host, &mut names).await?;
        let index = usize::try_from(round)? % MOMENTS.len();
        sleep(Duration::from_millis(MOMENTS[index])).await;
        cluster.agent.kill()?;
        check_kept(&own, &mounted, &[&host, &disk])?;
        cluster.agent.start()?;
    }
    let wanted = names.len() + 1;
    let pods = async || cluster.pods().await;
    let settled = |pods: &Vec<Value>| pods.len() == wanted && pods.iter().all(is_ready);
    let pods = eventually(MAX_WAIT, "all pods that are left are Ready", pods, settled).await?;
    // A file that is missing in a volume makes the container fail. A kill between create and start has the container made again under
    // the next number, as by the Go kubelet. A start that is under way when the agent is killed may fail, because the next agent replaces
    // the ConfigMap of which it mounts a part: such a container has not run.
    let statuses: Vec<&Value> =
        pods.iter().map(|pod| &pod["status"]["containerStatuses"][0]).collect();
    let has_run = |status: &&Value| !status["lastState"]["terminated"]["startedAt"].is_null();
    ensure!(!statuses.iter().any(has_run), "{statuses:#?}");
    ensure!(before[KEPT] == running(cx).await?[KEPT], "{KEPT} was restarted");
    check_kept(&own, &mounted, &[&host, &disk])?;
    for name in &names {
        cluster.kubectl(&["delete", "pod", name, "--wait=false"]).await?;
    }
    let all = own.parent().context("a pod's directory has a parent")?;
    let left = async || {
        let names = fs::read_dir(all)?.map(|entry| Ok(entry?.path()));
        names.collect::<Result<Vec<PathBuf>>>()
    };
    let only_kept = |left: &Vec<PathBuf>| left.as_slice() == [own.clone()];
    eventually(MAX_WAIT, "nothing is left of the others", left, only_kept).await?;
    check_kept(&own, &mounted, &[&host, &disk])?;
    cluster.kubectl(&["delete", "pod", KEPT, "--wait=true"]).await?;
    cluster.kubectl(&["delete", "pvc", "--all", "--wait=false"]).await?;
    cluster.kubectl(&["delete", "pv", "--all", "--wait=false"]).await?;
    for directory in [&host, &disk] {
        ensure!(fs::read_to_string(directory.join("kept"))? == "precious\n");
    }
    Ok(())
}

/// Two of three rounds make a pod, the third removes the oldest one; the ConfigMap of all of them changes every time.
async fn change(
    cluster: &TestCluster,
    round: u32,
    host: &Path,
    names: &mut Vec<String>,
) -> Result<()> {
    if round % 3 == 2 {
        let name = names.remove(0);
        cluster.kubectl(&["delete", "pod", &name, "--wait=false"]).await?;
    } else {
        let name = format!("v{round}");
        cluster.run(&pod_with_volumes(&name, host)).await?;
        names.push(name);
    }
    let value = format!("round {round}\n");
    cluster.apply(&config_map(&value)).await
}

fn config_map(value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "settings" }, "data": { "a": value, "b": value },
    })
}

/// The ConfigMap, the Secret, and the claim with the volume that it is bound to.
async fn create_objects(cluster: &TestCluster, disk: &Path) -> Result<()> {
    cluster.apply(&config_map("first\n")).await?;
    cluster.kubectl(&["create", "secret", "generic", "login", "--from-literal=k=hush\n"]).await?;
    let name = cluster.agent.name();
    let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [name] });
    let affinity = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } });
    let (modes, size) = (json!(["ReadWriteOnce"]), json!({ "storage": "1Gi" }));
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "disk" },
        "spec": {
            "capacity": size, "accessModes": modes, "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "", "local": { "path": disk }, "nodeAffinity": affinity,
        },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "disk" },
        "spec": {
            "accessModes": modes, "storageClassName": "", "volumeName": "disk",
            "resources": { "requests": size },
        },
    });
    cluster.apply(&volume).await?;
    cluster.apply(&claim).await
}

/// A pod that reads or writes in a volume of every kind and in parts of some, and fails if it cannot.
fn pod_with_volumes(name: &str, host: &Path) -> PodManifest {
    let script = [
        "cat:/settings/a",
        "cat:/login/k",
        "cat:/all/b",
        "cat:/all/name",
        "cat:/about/name",
        "cat:/host/kept",
        "cat:/disk/kept",
        "cat:/tools/etc/passwd",
        "cat:/one-key",
        "write:/scratch/f=x",
        "write:/memory/f=x",
        "write:/part/f=x",
        "write:/host-part/f=x",
        "forever",
    ];
    let part = |volume: &str, path: &str, part: &str| json!({ "name": volume, "mountPath": path, "subPath": part });
    let mut mounts = vec![
        part("scratch", "/part", "deep/part"),
        part("host", "/host-part", "part"),
        part("settings", "/one-key", "a"),
    ];
    let names = ["scratch", "memory", "settings", "login", "all", "about", "host", "disk", "tools"];
    mounts.extend(names.map(|name| json!({ "name": name, "mountPath": format!("/{name}") })));
    let about = json!({ "path": "name", "fieldRef": { "fieldPath": "metadata.name" } });
    let settings = json!({ "name": "settings" });
    let sources = json!([{ "configMap": settings }, { "downwardAPI": { "items": [about] } }]);
    let tools = json!({ "reference": images::SCRIPT, "pullPolicy": "IfNotPresent" });
    let volumes = [
        json!({ "name": "scratch", "emptyDir": {} }),
        json!({ "name": "memory", "emptyDir": { "medium": "Memory", "sizeLimit": "1Mi" } }),
        json!({ "name": "settings", "configMap": settings }),
        json!({ "name": "login", "secret": { "secretName": "login" } }),
        json!({ "name": "all", "projected": { "sources": sources } }),
        json!({ "name": "about", "downwardAPI": { "items": [about] } }),
        json!({ "name": "host", "hostPath": { "path": host } }),
        json!({ "name": "disk", "persistentVolumeClaim": { "claimName": "disk" } }),
        json!({ "name": "tools", "image": tools }),
    ];
    let main = script_container("main", &script).with("volumeMounts", mounts.into());
    let manifest = pod(name).with("terminationGracePeriodSeconds", 1).container(main);
    volumes.into_iter().fold(manifest, |manifest, volume| manifest.add("volumes", volume))
}

async fn directory_of(cluster: &TestCluster, pod: &str) -> Result<PathBuf> {
    let pod = cluster.pod(pod).await?;
    let uid = pod["metadata"]["uid"].as_str().context("a pod has a UID")?;
    Ok(cluster.agent.root().join("pods").join(uid))
}

/// What is mounted in a directory, in order.
fn mounted_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let all = mounts::current()?;
    let mut points: Vec<_> =
        mounts::beneath(&all, directory).map(|mount| mount.point.clone()).collect();
    points.sort();
    Ok(points)
}

/// The pod that stays has all it had: its mounts, each once, and what it has written; and so have the directories of the node.
fn check_kept(own: &Path, mounted: &[PathBuf], directories: &[&Path]) -> Result<()> {
    let now = mounted_below(own)?;
    ensure!(now == mounted, "was mounted: {mounted:?}\nis mounted: {now:?}");
    let volumes = own.join("volumes/kubernetes.io~empty-dir");
    for file in ["scratch/f", "scratch/deep/part/f", "memory/f"] {
        let path = volumes.join(file);
        ensure!(fs::read(&path).is_ok_and(|text| text == b"x"), "{} is gone", path.display());
    }
    for directory in directories {
        ensure!(directory.join("kept").exists(), "{} was emptied", directory.display());
    }
    Ok(())
}
