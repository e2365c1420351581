//! Restarts of containers that end by themselves.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::inspect::{ObservedPod, always, eventually};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_host::processes;
use oarsman_rig::ContainerdFlavour;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::starts::MAX_WAIT;

const NANOSECONDS: f64 = 1e9;

/// Waits until the container with so many restarts has ended, and returns when it had started and when it ended, in nanoseconds since 1970. The
/// next one may run by then: the first restart comes at once.
async fn run_times(cx: &ScenarioContext, restarts: u32) -> Result<(i64, i64)> {
    let ended = async || {
        let seen = cx.inspector().pod("web").await?;
        let ours = seen.all("main").into_iter().find(|it| it.restarts == Some(restarts)).cloned();
        Ok(ours.map(|it| (it.started, it.finished)))
    };
    let what = format!("the container of restart {restarts} has ended");
    let seen = eventually(MAX_WAIT * 2, &what, ended, |it| it.is_some_and(|it| it.1 > 0)).await?;
    seen.context("it was seen")
}

#[expect(clippy::cast_precision_loss, reason = "seconds between two moments of a test")]
fn seconds(from: i64, to: i64) -> f64 {
    (to - from) as f64 / NANOSECONDS
}

pub(super) async fn a_crash_loop_waits_nothing_then_ten_then_twenty_seconds(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    agent.apply("web", &pod("web").container(script_container("main", &["sleep:2s", "exit:1"])))?;
    let mut ended = run_times(cx, 0).await?.1;
    // A wait is made longer by up to half of itself, and what a busy machine takes to start a container comes on top.
    for (restart, least, most) in [(1, 0.0, 8.0), (2, 10.0, 23.0), (3, 20.0, 38.0)] {
        let (started, finished) = run_times(cx, restart).await?;
        let waited = seconds(ended, started);
        ensure!(least <= waited && waited <= most, "restart {restart} came after {waited} s");
        ended = finished;
    }
    Ok(())
}

pub(super) async fn on_failure_restarts_failures_only(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let manifest = pod("web")
        .with("restartPolicy", "OnFailure")
        .container(script_container("good", &["exit:0"]))
        .container(script_container("bad", &["exit:3"]));
    agent.apply("web", &manifest)?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "what failed was restarted", look, |pod| {
        pod.container("bad").is_ok_and(|bad| bad.restarts == Some(1) && bad.has_exited())
    })
    .await?;
    ensure!(seen.all("good").len() == 1 && seen.container("good")?.exit_code == 0, "{seen:#?}");
    ensure!(seen.container("bad")?.exit_code == 3, "{seen:#?}");
    Ok(())
}

pub(super) async fn what_never_restarts_runs_once(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let manifest = pod("web")
        .with("restartPolicy", "Never")
        .container(script_container("main", &["out:once", "exit:1"]));
    agent.apply("web", &manifest)?;
    let look = async || cx.inspector().pod("web").await;
    let ended = |pod: &ObservedPod| {
        pod.container("main").is_ok_and(|main| main.has_exited())
            && pod.sandbox().is_ok_and(|sandbox| !sandbox.is_ready)
    };
    let seen = eventually(MAX_WAIT, "it has ended and its sandbox with it", look, ended).await?;
    let once = |pod: &ObservedPod| pod.containers.len() == 1 && pod.sandboxes.len() == 1;
    always(Duration::from_secs(3), "it stays so", look, |pod| once(pod) && ended(pod)).await?;
    ensure!(seen.container("main")?.log_texts()? == ["once"], "its log is kept");
    let group = async || cx.inspector().groups(seen.uid());
    eventually(MAX_WAIT, "its cgroup is given back", group, |groups| groups.is_empty()).await?;
    agent.restart()?;
    always(Duration::from_secs(3), "a new agent knows that it has ended", look, once).await
}

pub(super) async fn exit_code_rules_come_before_the_policy(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let rule = |code: u8| json!([{ "action": "Restart", "exitCodes": { "operator": "In", "values": [code] } }]);
    let container = |name: &str, script: &[&str], code: u8| {
        script_container(name, script)
            .with("restartPolicy", "Never".into())
            .with("restartPolicyRules", rule(code))
    };
    let manifest = pod("web")
        .with("restartPolicy", "Never")
        .container(container("matches", &["exit:42"], 42))
        .container(container("differs", &["exit:1"], 42));
    agent.apply("web", &manifest)?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the rule restarts it", look, |pod| {
        pod.container("matches").is_ok_and(|it| it.restarts == Some(1) && it.has_exited())
    })
    .await?;
    ensure!(seen.all("differs").len() == 1, "{seen:#?}");
    Ok(())
}

/// The process that holds the containers of a sandbox.
fn shim_of(sandbox: &str) -> Result<Pid> {
    let is_shim = |pid: u32| {
        let arguments = processes::arguments(pid);
        let texts: Vec<_> = arguments.iter().map(|one| one.to_string_lossy()).collect();
        let is_one = texts.iter().any(|text| text == "serve" || text.contains("containerd-shim"));
        is_one && texts.iter().any(|text| text.ends_with(sandbox))
    };
    let found = processes::list()?.into_iter().find(|process| is_shim(process.pid));
    let pid = found.with_context(|| format!("no shim of {sandbox}"))?.pid;
    Pid::from_raw(i32::try_from(pid)?).context("a pid")
}

pub(super) async fn containers_of_a_killed_shim_are_restarted_by_policy(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let main = || script_container("main", &["out:before", "forever"]);
    agent.apply("web", &pod("web").with("terminationGracePeriodSeconds", 1).container(main()))?;
    agent.apply("once", &pod("once").with("restartPolicy", "Never").container(main()))?;
    for name in ["web", "once"] {
        let look = async || cx.inspector().pod(name).await;
        // It may write before the call that starts it comes back, which the shim has to live for.
        let has_written = |pod: &ObservedPod| {
            pod.runs("main")
                && pod
                    .container("main")
                    .is_ok_and(|it| it.log_texts().is_ok_and(|all| all == ["before"]))
        };
        let seen = eventually(MAX_WAIT, "it has written", look, has_written).await?;
        kill_process(shim_of(&seen.sandbox()?.id)?, Signal::KILL)?;
    }
    let look = async || cx.inspector().pod("web").await;
    let is_back = |pod: &ObservedPod| {
        pod.runs("main") && pod.container("main").is_ok_and(|main| main.restarts == Some(1))
    };
    eventually(MAX_WAIT, "it was started again", look, is_back).await?;
    let look = async || cx.inspector().pod("once").await;
    let has_ended = |pod: &ObservedPod| pod.container("main").is_ok_and(|main| main.has_exited());
    let seen = eventually(MAX_WAIT, "its end was noticed", look, has_ended).await?;
    let ended = seen.container("main")?;
    // How it ended is not known: containerd says 255, or 137 if it has killed it.
    let codes: &[i32] = match cx.rig().flavour() {
        ContainerdFlavour::Absent | ContainerdFlavour::OarsmanCri => &[137],
        ContainerdFlavour::Built | ContainerdFlavour::Debian => &[137, 255],
    };
    ensure!(codes.contains(&ended.exit_code), "{ended:?}");
    ensure!(ended.log_texts()? == ["before"], "what was written stays");
    always(Duration::from_secs(3), "it stays so", look, |pod| pod.containers.len() == 1).await
}
