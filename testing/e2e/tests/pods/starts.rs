//! How pods start, and how an edited manifest changes a running pod.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images;
use serde_json::json;

/// How long a pod may take to run on a machine that is busy with tests.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(30);

pub(super) async fn a_pod_starts_with_all_fields_of_its_spec(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let main =
        script_container("main", &["env:COLOUR", "cat:/etc/hosts", "write:/cache/f=x", "forever"])
            .env("COLOUR", "blue")
            .mount("cache", "/cache")
            .with("resources", json!({ "limits": { "cpu": "100m", "memory": "64Mi" } }));
    let manifest = pod("web")
        .container(main)
        .add("volumes", json!({ "name": "cache", "emptyDir": {} }))
        .with_metadata("labels", json!({ "app": "web" }));
    agent.apply("web", &manifest)?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let sandbox = seen.sandbox()?;
    ensure!(sandbox.is_ready && sandbox.attempt == 0, "{sandbox:?}");
    ensure!(sandbox.labels.get("app").map(String::as_str) == Some("web"), "{sandbox:?}");
    ensure!(
        sandbox.annotations.get("kubernetes.io/config.source").map(String::as_str) == Some("file"),
        "{sandbox:?}"
    );
    let container = seen.container("main")?;
    ensure!(container.restarts == Some(0), "{container:?}");
    let texts = async || cx.inspector().pod("web").await?.container("main")?.log_texts();
    let texts = eventually(MAX_WAIT, "it has written", texts, |texts| texts.len() > 6).await?;
    ensure!(texts.first().is_some_and(|line| line == "blue"), "{texts:?}");
    ensure!(texts.get(1).is_some_and(|line| line.contains("Kubernetes-managed")), "{texts:?}");
    let groups = cx.inspector().groups(seen.uid())?;
    let own = groups.iter().min_by_key(|group| group.as_os_str().len());
    let own = own.context("the pod has no cgroup")?;
    ensure!(own.to_string_lossy().contains("kubepods/pod"), "guaranteed: {own:?}");
    let memory = cx.inspector().group_value(own, "memory.limit_in_bytes")?;
    ensure!(memory == (64 << 20).to_string(), "{memory}");
    ensure!(cx.inspector().group_value(own, "cpu.cfs_quota_us")? == "10000");
    let cache = agent.root().join("pods").join(seen.uid());
    let cache = cache.join("volumes/kubernetes.io~empty-dir/cache/f");
    let written = async || Ok(fs::read_to_string(&cache)?);
    eventually(MAX_WAIT, "its volume is on the node", written, |text| text == "x").await?;
    Ok(())
}

pub(super) async fn an_edited_image_restarts_that_container_only(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let manifest = |image: &str| {
        pod("web")
            .with_metadata("uid", "11111111-2222-3333-4444-555555555555")
            .container(script_container("main", &["forever"]).with("image", image.into()))
            .container(script_container("other", &["forever"]))
    };
    agent.apply("web", &manifest(images::SCRIPT))?;
    let look = async || cx.inspector().pod("web").await;
    let runs = |pod: &oarsman_e2e::inspect::ObservedPod| pod.runs("main") && pod.runs("other");
    let before = eventually(MAX_WAIT, "both run", look, runs).await?;
    agent.apply("web", &manifest(images::SCRIPT_AS_USER))?;
    let after = eventually(MAX_WAIT, "the edited one runs anew", look, |pod| {
        pod.container("main").is_ok_and(|main| main.restarts == Some(1) && main.is_running())
    })
    .await?;
    ensure!(after.container("other")?.id == before.container("other")?.id, "{after:#?}");
    ensure!(after.sandbox()?.id == before.sandbox()?.id, "{after:#?}");
    Ok(())
}

pub(super) async fn an_edited_manifest_without_a_uid_replaces_the_pod(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let manifest = |text: &str| {
        pod("web").container(script_container("main", &[&format!("out:{text}"), "forever"]))
    };
    agent.apply("web", &manifest("one"))?;
    let look = async || cx.inspector().pod("web").await;
    let texts = async || cx.inspector().pod("web").await?.container("main")?.log_texts();
    // A process that has not printed anything yet may not have a handler of SIGTERM either, and then runs on for its whole grace period.
    let said = async || Ok(texts().await.unwrap_or_default());
    eventually(MAX_WAIT, "the pod runs", said, |texts| texts == &["one"]).await?;
    let before = look().await?;
    agent.apply("web", &manifest("two"))?;
    let after = eventually(MAX_WAIT, "another pod runs", look, |pod| {
        pod.runs("main") && pod.uid() != before.uid()
    })
    .await?;
    let ended = async || {
        let pods = cx.inspector().pods().await?;
        Ok(pods.iter().any(|pod| pod.uid() == before.uid()))
    };
    eventually(MAX_WAIT, "nothing is left of the first", ended, |left| !left).await?;
    eventually(MAX_WAIT, "it is the new one", texts, |texts| texts == &["two"]).await?;
    ensure!(after.container("main")?.restarts == Some(0), "{after:#?}");
    Ok(())
}

pub(super) async fn fifty_pods_start_at_once(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    for number in 0..50 {
        let name = format!("p{number}");
        let manifest = pod(&name).container(script_container("main", &["forever"]));
        agent.apply(&name, &manifest.with("terminationGracePeriodSeconds", 1))?;
    }
    let look = async || cx.inspector().pods().await;
    let running = |pods: &Vec<oarsman_e2e::inspect::ObservedPod>| {
        pods.len() == 50 && pods.iter().all(|pod| pod.runs("main"))
    };
    let pods = eventually(MAX_WAIT * 4, "all fifty run", look, running).await?;
    for pod in &pods {
        ensure!(pod.sandboxes.len() == 1 && pod.containers.len() == 1, "{pod:#?}");
        ensure!(pod.container("main")?.restarts == Some(0), "{pod:#?}");
    }
    Ok(())
}
