//! Parts of volumes (subPath, subPathExpr) on a real runtime.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_host::mounts;
use serde_json::json;

use super::starts::MAX_WAIT;

/// A pod of user 1000 and group 4321 that writes into parts of an emptyDir and of a directory of the host, and ends again and again.
fn writer(host: &Path) -> PodManifest {
    let script = ["write:/part/f=part", "write:/named/f=named", "write:/host/f=host", "exit:1"];
    let read_only =
        json!({ "name": "data", "mountPath": "/ro", "subPath": "new/part", "readOnly": true });
    let mounts = json!([
        { "name": "data", "mountPath": "/part", "subPath": "new/part" },
        { "name": "data", "mountPath": "/named", "subPathExpr": "$(NAME)/of" },
        { "name": "host", "mountPath": "/host", "subPath": "there" },
        read_only,
    ]);
    let main = script_container("main", &script).env("NAME", "logs").with("volumeMounts", mounts);
    pod("web")
        .with("terminationGracePeriodSeconds", 1)
        .with("securityContext", json!({ "runAsUser": 1000, "fsGroup": 4321 }))
        .add("volumes", json!({ "name": "data", "emptyDir": {} }))
        .host_path("host", &host.display().to_string())
        .container(main)
}

/// The mounts below a directory.
fn mounted(directory: &Path) -> Result<Vec<PathBuf>> {
    let all = mounts::current()?;
    Ok(mounts::beneath(&all, directory).map(|mount| mount.point.clone()).collect())
}

pub(super) async fn parts_of_volumes_outlive_containers_and_agents_and_go_with_the_pod(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let host = cx.scratch().join("host");
    fs::create_dir_all(host.join("there"))?;
    fs::set_permissions(host.join("there"), fs::Permissions::from_mode(0o777))?;
    agent.apply("web", &writer(&host))?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "it was restarted", look, |pod| {
        pod.container("main").is_ok_and(|main| main.restarts == Some(1) && main.has_exited())
    })
    .await?;
    ensure!(seen.container("main")?.log_texts()?.is_empty(), "{seen:#?}");
    let own = agent.root().join("pods").join(seen.uid());
    let data = own.join("volumes/kubernetes.io~empty-dir/data");
    for (file, text) in [
        (data.join("new/part/f"), "part"),
        (data.join("logs/of/f"), "named"),
        (host.join("there/f"), "host"),
    ] {
        ensure!(fs::read_to_string(&file)? == text, "{}", file.display());
    }
    // What the conformance tests ask for: a part that was not there has mode and group of its volume.
    for made in ["new", "new/part", "logs/of"] {
        let found = fs::metadata(data.join(made))?;
        let (mode, group) = (found.permissions().mode() & 0o7777, found.gid());
        ensure!((mode, group) == (0o2777, 4321), "{made}: {mode:o} {group}");
    }
    let points = mounted(&own)?;
    ensure!(points.len() == 4, "each part is mounted once: {points:?}");
    ensure!(points.contains(&own.join("volume-subpaths/data/main/1")), "{points:?}");
    agent.restart()?;
    agent.manifests().clear()?;
    let left = async || Ok((own.exists(), mounted(&own)?));
    eventually(MAX_WAIT, "nothing is left", left, |(own, left)| !own && left.is_empty()).await?;
    ensure!(fs::read_to_string(host.join("there/f"))? == "host", "the host's file stays");
    Ok(())
}
