//! Faults from outside: removed containers and cgroups, broken manifests, images that cannot be pulled.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_cri::Runtime;
use oarsman_e2e::inspect::{always, eventually};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_host::{cgroups, mounts};
use oarsman_rig::images::{self, OciImage};
use oarsman_rig::{Registry, RegistryCredentials, RepositoryBehaviour};
use rustix::io::Errno;
use serde_json::json;

use super::starts::MAX_WAIT;

pub(super) async fn a_container_removed_by_another_program_comes_back(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    agent.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let first = seen.container("main")?.id.clone();
    for client in cx.inspector().clients()? {
        client.stop_container(&first, Duration::ZERO).await?;
        client.remove_container(&first).await?;
    }
    let seen = eventually(MAX_WAIT, "it runs again", look, |pod| {
        pod.container("main").is_ok_and(|main| main.is_running() && main.id != first)
    })
    .await?;
    ensure!(seen.container("main")?.restarts >= Some(1), "{seen:#?}");
    ensure!(seen.sandboxes.len() == 1, "{seen:#?}");
    Ok(())
}

/// Moves the processes of a group to the one above it, and removes the group, in every hierarchy.
fn take_group_away(group: &Path) -> Result<()> {
    for hierarchy in cgroups::hierarchies(&mounts::current()?) {
        let above = hierarchy.directory(group.parent().unwrap_or(group)).join("cgroup.procs");
        for process in hierarchy.processes(group)? {
            match std::fs::write(&above, process.to_string()) {
                // The agent has noticed already, and ends the pod.
                Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
                moved => moved?,
            }
        }
        hierarchy.remove(group)?;
    }
    Ok(())
}

pub(super) async fn a_pod_cgroup_removed_by_another_program_comes_back(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.start(cx.setup()?.flag("sync-frequency", "2s"))?;
    agent.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let first = seen.container("main")?.id.clone();
    let groups = cx.inspector().groups(seen.uid())?;
    let Some(own) = groups.iter().min_by_key(|group| group.as_os_str().len()) else {
        anyhow::bail!("the pod has no cgroup");
    };
    take_group_away(own)?;
    eventually(MAX_WAIT, "it runs again, in a group again", look, |pod| {
        pod.container("main").is_ok_and(|main| main.is_running() && main.id != first)
    })
    .await?;
    let groups = cx.inspector().groups(seen.uid())?;
    ensure!(groups.contains(own), "{groups:?}");
    Ok(())
}

pub(super) async fn a_broken_manifest_keeps_its_pod_and_hides_no_other(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    agent.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let first = seen.container("main")?.id.clone();
    agent.manifests().write("web", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: we")?;
    agent.manifests().write("noise", "\u{0}\u{1}\u{2}")?;
    let named = async || Ok(std::fs::read_to_string(agent.log())?);
    eventually(MAX_WAIT, "the log names the files", named, |log| {
        log.contains("web") && log.contains("noise")
    })
    .await?;
    agent.apply("other", &pod("other").container(script_container("main", &["forever"])))?;
    let other = async || cx.inspector().pod("other").await;
    eventually(MAX_WAIT, "the other runs", other, |pod| pod.runs("main")).await?;
    always(Duration::from_secs(2), "the first runs on", look, |pod| {
        pod.container("main").is_ok_and(|main| main.is_running() && main.id == first)
    })
    .await?;
    // A broken manifest is removed as any other file.
    agent.manifests().remove("web")?;
    eventually(MAX_WAIT, "the first is gone", look, |pod| pod.is_gone()).await?;
    Ok(())
}

/// A registry on loopback with the script image under another name.
fn registry(cx: &ScenarioContext, name: &str) -> Result<Registry> {
    let all = images::standard(cx.rig().parts())?.into_iter();
    let actors = all.filter(|image| image.name == images::SCRIPT);
    let image = actors.map(|image| OciImage { name: format!("{name}:1"), ..image }).collect();
    let registry = Registry::start(image)?;
    cx.rig().allow_registry(registry.address())?;
    Ok(registry)
}

pub(super) async fn a_private_image_is_pulled_with_the_nodes_credentials(
    cx: &ScenarioContext,
) -> Result<()> {
    let registry = registry(cx, "private")?;
    let (username, password) = ("node".to_owned(), "s3cret".to_owned());
    let credentials = Some(RegistryCredentials { username, password });
    registry.set("private", RepositoryBehaviour { credentials, ..RepositoryBehaviour::default() });
    let agent = cx.agent()?;
    let wrong = json!({ "username": "node", "password": "guess" });
    let right = json!({ "username": "node", "password": "s3cret" });
    let address = registry.address().to_string();
    let auths = json!({ "auths": { format!("{address}/private"): wrong, address: right } });
    std::fs::write(agent.root().join("config.json"), auths.to_string())?;
    let main =
        script_container("main", &["forever"]).with("image", registry.name("private:1").into());
    agent.apply("web", &pod("web").container(main))?;
    let look = async || cx.inspector().pod("web").await;
    eventually(MAX_WAIT * 2, "it is pulled and runs", look, |pod| pod.runs("main")).await?;
    ensure!(registry.requests("private").denied > 0, "nobody ever asked without the right key");
    let log = std::fs::read_to_string(agent.log())?;
    ensure!(!log.contains("s3cret"), "the password is in the log");
    Ok(())
}

pub(super) async fn a_failed_pull_has_a_reason_and_is_retried(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let registry = registry(cx, "late")?;
    registry
        .set("late", RepositoryBehaviour { failure: Some(500), ..RepositoryBehaviour::default() });
    let name = registry.name("late:1");
    let main = script_container("main", &["forever"]).with("image", name.into());
    agent.apply("web", &pod("web").container(main))?;
    let said = async || Ok(std::fs::read_to_string(agent.log())?);
    eventually(MAX_WAIT, "the log says why", said, |log| {
        log.contains("Failed to pull image") && log.contains("ErrImagePull")
    })
    .await?;
    registry.set("late", RepositoryBehaviour::default());
    let look = async || cx.inspector().pod("web").await;
    eventually(MAX_WAIT * 2, "it is pulled and runs", look, |pod| pod.runs("main")).await?;
    Ok(())
}
