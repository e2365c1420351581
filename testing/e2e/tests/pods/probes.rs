//! Probes of real containers: every kind of handler, restarts, and probes that misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::cluster::is_ready;
use oarsman_e2e::inspect::{always, eventually, longest_gap};
use oarsman_e2e::manifest::{ContainerManifest, PodManifest, pod, script_container};
use oarsman_e2e::program;
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::starts::MAX_WAIT;

/// A pod that stops at once.
fn short_pod(name: &str) -> PodManifest {
    pod(name).with("terminationGracePeriodSeconds", 2)
}

fn server(name: &str) -> ContainerManifest {
    script_container(name, &["listen:8080", "grpc:8081", "forever"])
}

/// A probe that asks every second.
fn every_second(handler: &Value) -> Value {
    let mut probe = json!({ "periodSeconds": 1, "timeoutSeconds": 1 });
    let fields = handler.as_object().into_iter().flatten();
    fields.for_each(|(key, value)| probe[key] = value.clone());
    probe
}

fn http(path: &str) -> Value {
    every_second(&json!({ "httpGet": { "port": 8080, "path": path } }))
}

/// The pod's status, as the agent tells it.
async fn status(agent: &AgentProcess, name: &str) -> Result<Value> {
    let list = agent.command(&["ps", "-o", "json"]).await?.json()?;
    let pods = list["items"].as_array().context("no list of pods")?;
    let full_name = format!("{name}-node");
    let of_name = |pod: &&Value| pod["metadata"]["name"] == full_name.as_str();
    Ok(pods.iter().find(of_name).cloned().unwrap_or_default())
}

async fn wait_for_readiness(agent: &AgentProcess, name: &str, expected: bool) -> Result<()> {
    let look = async || status(agent, name).await;
    let what = format!("{name} is ready: {expected}");
    let runs = |pod: &Value| {
        let first = &pod["status"]["containerStatuses"][0]["state"];
        first["running"].is_object()
    };
    eventually(MAX_WAIT, &what, look, |pod| runs(pod) && is_ready(pod) == expected).await.map(drop)
}

async fn stays_ready(agent: &AgentProcess, name: &str, expected: bool) -> Result<()> {
    let look = async || status(agent, name).await;
    let what = format!("{name} stays so");
    always(Duration::from_secs(4), &what, look, |pod| is_ready(pod) == expected).await
}

/// The messages of a pod's events with that reason.
async fn events(agent: &AgentProcess, name: &str, reason: &str) -> Result<Vec<String>> {
    let events = agent.command(&["events", name, "-o", "json"]).await?.json()?;
    let events = events["items"].as_array().context("no list of events")?.iter();
    let events = events.filter(|event| event["reason"] == reason);
    Ok(events.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect())
}

pub(super) async fn each_kind_of_probe_makes_a_pod_ready_or_does_not(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let exec = |script: &str| json!({ "exec": { "command": ["/script", script] } });
    let tcp = |port: u16| json!({ "tcpSocket": { "port": port } });
    let grpc = |port: u16, service: &str| json!({ "grpc": { "port": port, "service": service } });
    let get = |path: &str| json!({ "httpGet": { "port": 8080, "path": path } });
    let rows = [
        ("exec-good", exec("exit:0"), true),
        ("exec-bad", exec("exit:3"), false),
        ("http-good", get("/"), true),
        ("http-bad", get("/status/500"), false),
        ("http-moved", get("/redirect//status/204"), true),
        ("tcp-good", tcp(8080), true),
        ("tcp-bad", tcp(8082), false),
        ("grpc-good", grpc(8081, ""), true),
        ("grpc-bad", grpc(8081, "down"), false),
        ("grpc-none", grpc(8080, ""), false),
    ];
    for (name, handler, _) in &rows {
        let container = server("main").with("readinessProbe", every_second(handler));
        agent.apply(name, &short_pod(name).container(container))?;
    }
    for (name, _, expected) in &rows {
        wait_for_readiness(&agent, name, *expected).await?;
    }
    for (name, _, expected) in rows {
        ensure!(is_ready(&status(&agent, name).await?) == expected, "{name} has changed");
        if !expected {
            let told = events(&agent, name, "Unhealthy").await?;
            ensure!(told.iter().any(|it| it.starts_with("Readiness probe failed: ")), "{told:?}");
        }
    }
    Ok(())
}

pub(super) async fn readiness_follows_its_probe_without_a_restart(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let directory = cx.scratch();
    fs::create_dir_all(&directory)?;
    let mut probe = http("/file/flags/ready");
    probe["failureThreshold"] = json!(1);
    let container = server("main").mount("flags", "/flags").with("readinessProbe", probe);
    let manifest = short_pod("web").host_path("flags", &directory.display().to_string());
    agent.apply("web", &manifest.container(container))?;
    let flag = directory.join("ready");
    wait_for_readiness(&agent, "web", false).await?;
    for _ in 0..2 {
        fs::write(&flag, "")?;
        wait_for_readiness(&agent, "web", true).await?;
        fs::remove_file(&flag)?;
        wait_for_readiness(&agent, "web", false).await?;
    }
    let why = agent.command(&["explain", "web"]).await?.success()?;
    ensure!(why.contains("HTTP probe failed with statuscode: 503"), "{why}");
    ensure!(cx.inspector().pod("web").await?.all("main").len() == 1, "nothing was restarted");
    Ok(())
}

pub(super) async fn a_failed_liveness_probe_restarts_and_a_startup_probe_holds_it_back(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let dies = server("main").with("livenessProbe", http("/status/500"));
    agent.apply("dies", &short_pod("dies").container(dies))?;
    // Its liveness would fail at once; startup does not succeed, and so it is not asked.
    let mut startup = http("/status/500");
    startup["failureThreshold"] = json!(1000);
    let starts =
        server("main").with("startupProbe", startup).with("livenessProbe", http("/status/500"));
    agent.apply("starts", &short_pod("starts").container(starts))?;
    let look = async || cx.inspector().pod("dies").await;
    eventually(MAX_WAIT, "it was restarted", look, |pod| {
        pod.container("main").is_ok_and(|main| main.restarts == Some(1) && main.is_running())
    })
    .await?;
    let told = events(&agent, "dies", "Killing").await?;
    let expected = "Container main failed liveness probe, will be restarted";
    ensure!(told.iter().any(|message| message == expected), "{told:?}");
    let seen = cx.inspector().pod("starts").await?;
    ensure!(seen.all("main").len() == 1, "{seen:#?}");
    let pod = status(&agent, "starts").await?;
    ensure!(pod["status"]["containerStatuses"][0]["started"] == false, "{pod:#}");
    Ok(())
}

pub(super) async fn a_command_that_times_out_leaves_no_process(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let mut probe = every_second(&json!({ "exec": { "command": ["/script", "forever"] } }));
    probe["periodSeconds"] = json!(4);
    let container = server("main").with("readinessProbe", probe);
    agent.apply("web", &short_pod("web").container(container))?;
    wait_for_readiness(&agent, "web", false).await?;
    let look = async || events(&agent, "web", "Unhealthy").await;
    let timed_out = |told: &Vec<String>| told.iter().any(|it| it.contains("command timed out"));
    eventually(MAX_WAIT, "a probe timed out", look, timed_out).await?;
    let seen = cx.inspector().pod("web").await?;
    let groups = cx.inspector().groups(seen.uid())?;
    let group = groups.iter().next().context("the pod has no cgroup")?;
    let group = group.join(&seen.container("main")?.id);
    let processes =
        async || Ok(cx.inspector().group_value(&group, "cgroup.procs")?.lines().count());
    // Again and again a command runs for a second, and is gone for three.
    for _ in 0..2 {
        eventually(MAX_WAIT, "a command runs", processes, |count| *count == 2).await?;
        eventually(MAX_WAIT, "no command is left", processes, |count| *count == 1).await?;
    }
    Ok(())
}

/// The address of a name server that takes questions and answers none.
const SILENT_RESOLVER: &str = "127.0.0.53:53";
/// How long one question to it takes, in seconds: longer than the scenario.
const RESOLVER_TIMEOUT: u32 = 30;

/// An agent that asks that name server, in a mount namespace of its own.
fn agent_with_silent_resolver(cx: &ScenarioContext) -> Result<Arc<AgentProcess>> {
    let (file, wrapper) = (cx.scratch().join("resolv.conf"), cx.scratch().join("agent.sh"));
    let address = SILENT_RESOLVER.trim_end_matches(":53");
    let options = format!("options timeout:{RESOLVER_TIMEOUT} attempts:5");
    fs::write(&file, format!("nameserver {address}\n{options}\n"))?;
    let mount = format!("mount --bind {} /etc/resolv.conf", file.display());
    let script = format!("{mount} && exec {} \"$@\"", program::path()?.display());
    fs::write(&wrapper, format!("#!/bin/sh\nexec unshare --mount sh -c '{script}' sh \"$@\"\n"))?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    cx.start(cx.setup()?.program(&wrapper))
}

pub(super) async fn a_probe_that_misbehaves_affects_its_own_pod_only(
    cx: &ScenarioContext,
) -> Result<()> {
    let resolver = UdpSocket::bind(SILENT_RESOLVER).await?;
    let agent = agent_with_silent_resolver(cx)?;
    let good = server("main")
        .with("readinessProbe", http("/print/asked"))
        .with("livenessProbe", http("/"));
    agent.apply("good", &short_pod("good").container(good))?;
    wait_for_readiness(&agent, "good", true).await?;
    let slow = |mut probe: Value| {
        probe["timeoutSeconds"] = json!(RESOLVER_TIMEOUT);
        probe
    };
    let nameless = json!({ "host": "name.that.never.resolves", "port": 80, "path": "/" });
    let rows = [
        ("hangs", slow(http("/hang")), false),
        ("huge", http("/huge"), true),
        ("node", http("/redirect/http://127.0.0.1:10248/healthz"), true),
        ("nameless", slow(every_second(&json!({ "httpGet": nameless }))), false),
    ];
    for (name, probe, _) in &rows {
        let container = server("main")
            .with("readinessProbe", probe.clone())
            .with("livenessProbe", probe.clone());
        agent.apply(name, &short_pod(name).container(container))?;
    }
    for (name, _, expected) in &rows {
        wait_for_readiness(&agent, name, *expected).await?;
    }
    timeout(MAX_WAIT, resolver.recv_from(&mut [0; 512]))
        .await
        .context("no name was looked up")??;
    let told = events(&agent, "node", "ProbeWarning").await?;
    ensure!(told.iter().any(|it| it.contains("Probe terminated redirects")), "{told:?}");
    stays_ready(&agent, "good", true).await?;
    let late = server("main").with("readinessProbe", http("/"));
    agent.apply("late", &short_pod("late").container(late))?;
    wait_for_readiness(&agent, "late", true).await?;
    for name in ["hangs", "nameless"] {
        let mut told = events(&agent, name, "Unhealthy").await?;
        // The first probe may come before the container listens.
        told.retain(|message| !message.contains("Connection refused"));
        ensure!(told.is_empty(), "the probe of {name} is still under way: {told:?}");
    }
    let memory = agent.pss()?;
    ensure!(memory < 200 << 20, "the agent uses {memory} bytes: it has read too much");
    let good = cx.inspector().pod("good").await?;
    ensure!(good.all("main").len() == 1, "it was restarted");
    let asked = good.container("main")?.log_times()?.remove("asked").unwrap_or_default();
    // Twice the period would be one probe left out; a busy machine may be late by another.
    let gap = longest_gap(&asked);
    ensure!(asked.len() > 4 && gap < Duration::from_secs(3), "{gap:?} between two of {asked:?}");
    Ok(())
}
