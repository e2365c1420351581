//! What others do to our pods, and what is wrong from the start.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_cri::Runtime;
use oarsman_e2e::look::{always, eventually};
use oarsman_e2e::manifest::{actor, pod};
use oarsman_e2e::scenario::Stage;
use oarsman_host::{cgroups, mounts};
use oarsman_rig::images::{self, Image};
use oarsman_rig::{Behaviour, Credentials, Registry};
use serde_json::json;

use super::starts::PATIENCE;

pub(super) async fn a_container_removed_behind_our_back_comes_back(stage: &Stage) -> Result<()> {
    let agent = stage.agent()?;
    agent.apply("web", &pod("web").container(actor("main", &["forever"])))?;
    let look = async || stage.look().pod("web").await;
    let seen = eventually(PATIENCE, "the pod runs", look, |pod| pod.runs("main")).await?;
    let first = seen.container("main")?.id.clone();
    let client = stage.rig().client()?;
    client.stop_container(&first, Duration::ZERO).await?;
    client.remove_container(&first).await?;
    let seen = eventually(PATIENCE, "it runs again", look, |pod| {
        pod.container("main").is_ok_and(|main| main.is_running() && main.id != first)
    })
    .await?;
    ensure!(seen.container("main")?.restarts >= Some(1), "{seen:#?}");
    ensure!(seen.sandboxes.len() == 1, "{seen:#?}");
    Ok(())
}

/// Moves what lives in a group to the one above it, and removes the group, in every hierarchy.
fn take_group_away(group: &Path) -> Result<()> {
    for hierarchy in cgroups::hierarchies(&mounts::current()?) {
        let above = hierarchy.directory(group.parent().unwrap_or(group)).join("cgroup.procs");
        for process in hierarchy.processes(group)? {
            std::fs::write(&above, process.to_string())?;
        }
        hierarchy.remove(group)?;
    }
    Ok(())
}

pub(super) async fn a_pod_cgroup_removed_behind_our_back_comes_back(stage: &Stage) -> Result<()> {
    let agent = stage.start(stage.setup()?.flag("sync-frequency", "2s"))?;
    agent.apply("web", &pod("web").container(actor("main", &["forever"])))?;
    let look = async || stage.look().pod("web").await;
    let seen = eventually(PATIENCE, "the pod runs", look, |pod| pod.runs("main")).await?;
    let first = seen.container("main")?.id.clone();
    let groups = stage.look().groups(seen.uid())?;
    let Some(own) = groups.iter().min_by_key(|group| group.as_os_str().len()) else {
        anyhow::bail!("the pod has no cgroup");
    };
    take_group_away(own)?;
    eventually(PATIENCE, "it runs again, in a group again", look, |pod| {
        pod.container("main").is_ok_and(|main| main.is_running() && main.id != first)
    })
    .await?;
    let groups = stage.look().groups(seen.uid())?;
    ensure!(groups.contains(own), "{groups:?}");
    Ok(())
}

pub(super) async fn a_broken_manifest_keeps_its_pod_and_hides_no_other(
    stage: &Stage,
) -> Result<()> {
    let agent = stage.agent()?;
    agent.apply("web", &pod("web").container(actor("main", &["forever"])))?;
    let look = async || stage.look().pod("web").await;
    let seen = eventually(PATIENCE, "the pod runs", look, |pod| pod.runs("main")).await?;
    let first = seen.container("main")?.id.clone();
    agent.manifests().write("web", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: we")?;
    agent.manifests().write("noise", "\u{0}\u{1}\u{2}")?;
    let named = async || Ok(std::fs::read_to_string(agent.log())?);
    eventually(PATIENCE, "the log names the files", named, |log| {
        log.contains("web") && log.contains("noise")
    })
    .await?;
    agent.apply("other", &pod("other").container(actor("main", &["forever"])))?;
    let other = async || stage.look().pod("other").await;
    eventually(PATIENCE, "the other runs", other, |pod| pod.runs("main")).await?;
    always(Duration::from_secs(2), "the first runs on", look, |pod| {
        pod.container("main").is_ok_and(|main| main.is_running() && main.id == first)
    })
    .await?;
    // What is broken beyond repair is taken away as any other file.
    agent.manifests().remove("web")?;
    eventually(PATIENCE, "the first is gone", look, |pod| pod.is_gone()).await?;
    Ok(())
}

/// A registry on loopback with the actor's image under another name.
fn registry(stage: &Stage, name: &str) -> Result<Registry> {
    let all = images::standard(stage.rig().parts())?.into_iter();
    let actors = all.filter(|image| image.name == images::ACTOR);
    let image = actors.map(|image| Image { name: format!("{name}:1"), ..image }).collect();
    let registry = Registry::start(image)?;
    stage.rig().allow_registry(registry.address())?;
    Ok(registry)
}

pub(super) async fn a_private_image_is_pulled_with_the_nodes_credentials(
    stage: &Stage,
) -> Result<()> {
    let registry = registry(stage, "private")?;
    let (username, password) = ("node".to_owned(), "s3cret".to_owned());
    let credentials = Some(Credentials { username, password });
    registry.set("private", Behaviour { credentials, ..Behaviour::default() });
    let agent = stage.agent()?;
    let wrong = json!({ "username": "node", "password": "guess" });
    let right = json!({ "username": "node", "password": "s3cret" });
    let address = registry.address().to_string();
    let auths = json!({ "auths": { format!("{address}/private"): wrong, address: right } });
    std::fs::write(agent.root().join("config.json"), auths.to_string())?;
    let main = actor("main", &["forever"]).with("image", registry.name("private:1").into());
    agent.apply("web", &pod("web").container(main))?;
    let look = async || stage.look().pod("web").await;
    eventually(PATIENCE * 2, "it is pulled and runs", look, |pod| pod.runs("main")).await?;
    ensure!(registry.requests("private").denied > 0, "nobody ever asked without the right key");
    let log = std::fs::read_to_string(agent.log())?;
    ensure!(!log.contains("s3cret"), "the password is in the log");
    Ok(())
}

pub(super) async fn an_image_that_cannot_be_had_says_why_and_comes(stage: &Stage) -> Result<()> {
    let agent = stage.agent()?;
    let registry = registry(stage, "late")?;
    registry.set("late", Behaviour { failure: Some(500), ..Behaviour::default() });
    let name = registry.name("late:1");
    let main = actor("main", &["forever"]).with("image", name.into());
    agent.apply("web", &pod("web").container(main))?;
    let said = async || Ok(std::fs::read_to_string(agent.log())?);
    eventually(PATIENCE, "the log says why", said, |log| {
        log.contains("Failed to pull image") && log.contains("ErrImagePull")
    })
    .await?;
    registry.set("late", Behaviour::default());
    let look = async || stage.look().pod("web").await;
    eventually(PATIENCE * 2, "it is pulled and runs", look, |pod| pod.runs("main")).await?;
    Ok(())
}
