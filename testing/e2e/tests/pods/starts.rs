//! How pods come to run, and what an edit makes of one that does.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::look::eventually;
use oarsman_e2e::manifest::{actor, pod};
use oarsman_e2e::scenario::Stage;
use oarsman_rig::images;
use serde_json::json;

/// How long a pod may take to run on a machine that is busy with tests.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn a_pod_starts_with_all_that_it_was_promised(stage: &Stage) -> Result<()> {
    let agent = stage.agent()?;
    let main = actor("main", &["env:COLOUR", "cat:/etc/hosts", "write:/cache/f=x", "forever"])
        .env("COLOUR", "blue")
        .mount("cache", "/cache")
        .with("resources", json!({ "limits": { "cpu": "100m", "memory": "64Mi" } }));
    let manifest = pod("web")
        .container(main)
        .add("volumes", json!({ "name": "cache", "emptyDir": {} }))
        .with_metadata("labels", json!({ "app": "web" }));
    agent.apply("web", &manifest)?;
    let look = async || stage.look().pod("web").await;
    let seen = eventually(PATIENCE, "the pod runs", look, |pod| pod.runs("main")).await?;
    let sandbox = seen.sandbox()?;
    ensure!(sandbox.is_ready && sandbox.attempt == 0, "{sandbox:?}");
    ensure!(sandbox.labels.get("app").map(String::as_str) == Some("web"), "{sandbox:?}");
    ensure!(
        sandbox.annotations.get("kubernetes.io/config.source").map(String::as_str) == Some("file"),
        "{sandbox:?}"
    );
    let container = seen.container("main")?;
    ensure!(container.restarts == Some(0), "{container:?}");
    let texts = async || stage.look().pod("web").await?.container("main")?.log_texts();
    let texts = eventually(PATIENCE, "it has written", texts, |texts| texts.len() > 6).await?;
    ensure!(texts.first().is_some_and(|line| line == "blue"), "{texts:?}");
    ensure!(texts.get(1).is_some_and(|line| line.contains("Kubernetes-managed")), "{texts:?}");
    let groups = stage.look().groups(seen.uid())?;
    let own = groups.iter().min_by_key(|group| group.as_os_str().len());
    let own = own.context("the pod has no cgroup")?;
    ensure!(own.to_string_lossy().contains("kubepods/pod"), "guaranteed: {own:?}");
    let memory = stage.look().group_value(own, "memory.limit_in_bytes")?;
    ensure!(memory == (64 << 20).to_string(), "{memory}");
    ensure!(stage.look().group_value(own, "cpu.cfs_quota_us")? == "10000");
    let cache = agent.root().join("pods").join(seen.uid());
    let cache = cache.join("volumes/kubernetes.io~empty-dir/cache/f");
    let written = async || Ok(fs::read_to_string(&cache)?);
    eventually(PATIENCE, "its volume is on the node", written, |text| text == "x").await?;
    Ok(())
}

pub(super) async fn an_edited_image_restarts_that_container_only(stage: &Stage) -> Result<()> {
    let agent = stage.agent()?;
    let manifest = |image: &str| {
        pod("web")
            .with_metadata("uid", "11111111-2222-3333-4444-555555555555")
            .container(actor("main", &["forever"]).with("image", image.into()))
            .container(actor("other", &["forever"]))
    };
    agent.apply("web", &manifest(images::ACTOR))?;
    let look = async || stage.look().pod("web").await;
    let runs = |pod: &oarsman_e2e::look::PodSeen| pod.runs("main") && pod.runs("other");
    let before = eventually(PATIENCE, "both run", look, runs).await?;
    agent.apply("web", &manifest(images::ACTOR_AS_USER))?;
    let after = eventually(PATIENCE, "the edited one runs anew", look, |pod| {
        pod.container("main").is_ok_and(|main| main.restarts == Some(1) && main.is_running())
    })
    .await?;
    ensure!(after.container("other")?.id == before.container("other")?.id, "{after:#?}");
    ensure!(after.sandbox()?.id == before.sandbox()?.id, "{after:#?}");
    Ok(())
}

pub(super) async fn an_edited_manifest_without_a_uid_replaces_the_pod(stage: &Stage) -> Result<()> {
    let agent = stage.agent()?;
    let manifest =
        |text: &str| pod("web").container(actor("main", &[&format!("out:{text}"), "forever"]));
    agent.apply("web", &manifest("one"))?;
    let look = async || stage.look().pod("web").await;
    let before = eventually(PATIENCE, "the pod runs", look, |pod| pod.runs("main")).await?;
    agent.apply("web", &manifest("two"))?;
    let after = eventually(PATIENCE, "another pod runs", look, |pod| {
        pod.runs("main") && pod.uid() != before.uid()
    })
    .await?;
    let ended = async || {
        let pods = stage.look().pods().await?;
        Ok(pods.iter().any(|pod| pod.uid() == before.uid()))
    };
    eventually(PATIENCE, "nothing is left of the first", ended, |left| !left).await?;
    let texts = async || stage.look().pod("web").await?.container("main")?.log_texts();
    eventually(PATIENCE, "it is the new one", texts, |texts| texts == &["two"]).await?;
    ensure!(after.container("main")?.restarts == Some(0), "{after:#?}");
    Ok(())
}

pub(super) async fn fifty_pods_start_at_once(stage: &Stage) -> Result<()> {
    let agent = stage.agent()?;
    for number in 0..50 {
        let name = format!("p{number}");
        let manifest = pod(&name).container(actor("main", &["forever"]));
        agent.apply(&name, &manifest.with("terminationGracePeriodSeconds", 1))?;
    }
    let look = async || stage.look().pods().await;
    let running = |pods: &Vec<oarsman_e2e::look::PodSeen>| {
        pods.len() == 50 && pods.iter().all(|pod| pod.runs("main"))
    };
    let pods = eventually(PATIENCE * 4, "all fifty run", look, running).await?;
    for pod in &pods {
        ensure!(pod.sandboxes.len() == 1 && pod.containers.len() == 1, "{pod:#?}");
        ensure!(pod.container("main")?.restarts == Some(0), "{pod:#?}");
    }
    Ok(())
}
