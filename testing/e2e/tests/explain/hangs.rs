//! Causes of a runtime that refuses calls or does not answer them, by a proxy before containerd.

use anyhow::Result;
use oarsman_core::explain::ExplanationCause;
use oarsman_cri::ErrorCode;
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::manifest::{image, pod, script_container};
use oarsman_e2e::proxy::{CallFilter, CriProxy, ProxyRule, RuleAction};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images::SCRIPT_AS_USER;

use super::ask::{expected, until};

pub(super) const CAUSES: &[ExplanationCause] = &[
    ExplanationCause::SandboxFails,
    ExplanationCause::SandboxTakesLong,
    ExplanationCause::CannotCreate,
    ExplanationCause::CannotStart,
    ExplanationCause::StartTakesLong,
    ExplanationCause::ImageUnreadable,
    ExplanationCause::ImagePullFails,
    ExplanationCause::StopOverdue,
    ExplanationCause::GivingBack,
];

const SAID: &str = "the test wants this call to fail";
const AGAIN: &str = "; the next try is in N seconds";

/// The pods that are there at the beginning.
const PODS: &[&str] = &[
    "no-box",
    "slow-box",
    "no-make",
    "no-start",
    "slow-start",
    "unread",
    "unpulled",
    "stuck",
    "left",
];

/// An image that is not on the node, and whose pull the proxy holds.
const UNPULLED: &str = "rig.local/unpulled:1";

pub(super) async fn a_runtime_that_refuses_or_hangs_is_quoted(cx: &ScenarioContext) -> Result<()> {
    let (agent, proxy) = cx.agent_behind_proxy().await?;
    let rules = rules(&proxy);
    for name in PODS {
        let main = match *name {
            "unread" => image("main", SCRIPT_AS_USER).with("args", ["forever"].as_slice().into()),
            "unpulled" => image("main", UNPULLED),
            _ => script_container("main", &["forever"]),
        };
        let manifest = pod(name).with("terminationGracePeriodSeconds", 1).container(main);
        agent.apply(name, &manifest)?;
    }
    let healthy = expected(
        ExplanationCause::Running,
        "The pod runs and is ready, for N seconds now.",
        "Nothing to do. `oarsman logs -c main {pod}` shows what it says.",
    );
    for name in ["stuck", "left"] {
        until(&agent, name, &healthy).await?;
        agent.manifests().remove(name)?;
    }
    ends(&agent).await?;
    starts(&agent).await?;
    images(&agent).await?;
    drop(rules);
    Ok(())
}

/// The rules hold as long as they are kept.
fn rules(proxy: &CriProxy) -> Vec<ProxyRule> {
    let about = |call: &str, thing: &str| CallFilter::all().named(call).about(thing);
    let fails =
        |call, thing| proxy.add_rule(about(call, thing), RuleAction::Fail(ErrorCode::Internal));
    let holds = |call, thing| proxy.add_rule(about(call, thing), RuleAction::Hold);
    vec![
        fails("RunPodSandbox", "no-box-node"),
        holds("RunPodSandbox", "slow-box-node"),
        fails("CreateContainer", "no-make-node"),
        fails("StartContainer", "no-start-node"),
        holds("StartContainer", "slow-start-node"),
        fails("ImageStatus", SCRIPT_AS_USER),
        fails("PullImage", UNPULLED),
        holds("StopContainer", "stuck-node"),
        holds("RemovePodSandbox", "left-node"),
    ]
}

async fn starts(agent: &AgentProcess) -> Result<()> {
    let follow = "Follow what the runtime says; all of it is in `oarsman describe {pod}`.";
    let rows = [
        (
            "no-box",
            ExplanationCause::SandboxFails,
            format!("Nothing of the pod can be started: {SAID} (internal){AGAIN}."),
            "Follow what is said there; all of it is in `oarsman describe {pod}`.",
        ),
        (
            "slow-box",
            ExplanationCause::SandboxTakesLong,
            "The pod's sandbox and network are being made, for N seconds now: that should take a second.".to_owned(),
            "See what the runtime or its CNI plugin waits for: `journalctl -u {unit}`.",
        ),
        (
            "no-make",
            ExplanationCause::CannotCreate,
            format!("The runtime cannot make container main: {SAID} (internal){AGAIN}."),
            follow,
        ),
        (
            "no-start",
            ExplanationCause::CannotStart,
            format!("The runtime cannot start container main: {SAID} (internal){AGAIN}."),
            follow,
        ),
        (
            "slow-start",
            ExplanationCause::StartTakesLong,
            "The runtime is starting container main, for N seconds now: that should take a second.".to_owned(),
            "See what the runtime waits for: its log tells.",
        ),
    ];
    for (name, cause, sentence, next) in rows {
        until(agent, name, &expected(cause, &sentence, next)).await?;
    }
    Ok(())
}

async fn images(agent: &AgentProcess) -> Result<()> {
    let sentence = format!(
        "The runtime cannot say whether it has the image {SCRIPT_AS_USER} of container main: {SAID} (internal){AGAIN}."
    );
    let next = "See whether the runtime is well: `journalctl -u {unit}`.";
    until(agent, "unread", &expected(ExplanationCause::ImageUnreadable, &sentence, next)).await?;
    let sentence =
        format!("The image {UNPULLED} of container main cannot be pulled: {SAID}{AGAIN}.");
    let next = format!("Try it by hand: `crictl pull {UNPULLED}`.");
    until(agent, "unpulled", &expected(ExplanationCause::ImagePullFails, &sentence, &next)).await
}

async fn ends(agent: &AgentProcess) -> Result<()> {
    let stuck = expected(
        ExplanationCause::StopOverdue,
        "The pod should be gone: container main had N seconds to end and is still there after N seconds; the runtime does not get it killed.",
        "Look for a process that the kernel does not let die (state D: `ps -eo pid,stat,wchan,cmd | grep ' D'`), such as one on a dead NFS mount, and at what the runtime says: `journalctl -u {unit}`.",
    );
    until(agent, "stuck", &stuck).await?;
    let left = expected(
        ExplanationCause::GivingBack,
        "Nothing of the pod runs any more; its volumes, directories and cgroup are given back, for N seconds now.",
        "Wait; if it takes long, something still uses them: `lsof +D {root}`.",
    );
    until(agent, "left", &left).await
}
