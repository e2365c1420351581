//! Static pods that are not admitted, and one that is because another makes room.

use anyhow::{Result, ensure};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::json;

use super::starts::MAX_WAIT;

fn lasting(name: &str) -> PodManifest {
    pod(name)
        .with("terminationGracePeriodSeconds", 1)
        .container(script_container("main", &["forever"]))
}

/// Waits until `explain` says of the pod that it was rejected with that reason and message.
async fn until_rejected(
    agent: &AgentProcess,
    name: &str,
    reason: &str,
    message: &str,
) -> Result<()> {
    let expected = format!("({reason}): Pod was rejected: {message}");
    let ask = async || Ok(agent.command(&["explain", name]).await?.out);
    let what = format!("{name} is rejected: {expected}");
    eventually(MAX_WAIT, &what, ask, |said| said.contains(&expected)).await?;
    Ok(())
}

pub(super) async fn pods_that_do_not_fit_the_node_are_rejected_with_the_reason(
    cx: &ScenarioContext,
) -> Result<()> {
    let setup = cx.setup()?.flag("allowed-unsafe-sysctls", "net.core.*");
    let agent = cx.start(setup)?;
    let port = json!([{ "containerPort": 80, "hostPort": 34_567 }]);
    let with_port = |name: &str| {
        let main = script_container("main", &["forever"]).with("ports", port.clone());
        pod(name).with("terminationGracePeriodSeconds", 1).container(main)
    };
    agent.apply("first", &with_port("first"))?;
    let first = async || cx.inspector().pod("first").await;
    eventually(MAX_WAIT, "the first runs", first, |pod| pod.runs("main")).await?;
    let sysctls = |name: &str| json!({ "sysctls": [{ "name": name, "value": "128" }] });
    agent.apply("unsafe", &lasting("unsafe").with("securityContext", sysctls("kernel.msgmax")))?;
    agent.apply(
        "allowed",
        &lasting("allowed").with("securityContext", sysctls("net.core.somaxconn")),
    )?;
    agent.apply("port", &with_port("port"))?;
    agent.apply("selector", &lasting("selector").with("nodeSelector", json!({ "disk": "ssd" })))?;
    agent.apply("system", &lasting("system").with("os", json!({ "name": "windows" })))?;
    let requests = json!({ "requests": { "cpu": "4k" }, "limits": { "cpu": "4k" } });
    let big = script_container("main", &["forever"]).with("resources", requests);
    agent.apply("big", &pod("big").container(big))?;
    let sysctl = "forbidden sysctl: \"kernel.msgmax\" not allowlisted";
    until_rejected(&agent, "unsafe", "SysctlForbidden", sysctl).await?;
    let taken =
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
    until_rejected(&agent, "port", "NodePorts", taken).await?;
    let affinity =
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    until_rejected(&agent, "selector", "NodeAffinity", affinity).await?;
    let system = "Failed to admit pod as the OS field doesn't match node OS";
    until_rejected(&agent, "system", "PodOSNotSupported", system).await?;
    // A static pod is critical, and there is nothing to preempt.
    let none = "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt";
    until_rejected(&agent, "big", "UnexpectedAdmissionError", none).await?;
    let allowed = async || cx.inspector().pod("allowed").await;
    eventually(MAX_WAIT, "the allowed one runs", allowed, |pod| pod.runs("main")).await?;
    let made = cx.inspector().pods().await?;
    let sandboxes: usize = made.iter().map(|pod| pod.sandboxes.len()).sum();
    ensure!(sandboxes == 2, "only two pods were started: {made:#?}");
    Ok(())
}

pub(super) async fn a_critical_pod_makes_one_of_lower_priority_leave(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.start(cx.setup()?.flag("max-pods", "2"))?;
    agent.apply("low", &lasting("low").with("priority", 10))?;
    agent.apply("middle", &lasting("middle").with("priority", 1000))?;
    for name in ["low", "middle"] {
        let look = async || cx.inspector().pod(name).await;
        eventually(MAX_WAIT, "both run", look, |pod| pod.runs("main")).await?;
    }
    let middle = cx.inspector().pod("middle").await?.container("main")?.id.clone();
    agent.apply("high", &lasting("high").with("priority", 500))?;
    let look = async || cx.inspector().pod("high").await;
    eventually(MAX_WAIT, "the critical one runs", look, |pod| pod.runs("main")).await?;
    let low = cx.inspector().pod("low").await?;
    ensure!(!low.runs("main"), "{low:#?}");
    let still = cx.inspector().pod("middle").await?;
    ensure!(still.container("main")?.id == middle && still.runs("main"), "{still:#?}");
    let ask = async || Ok(agent.command(&["explain", "low"]).await?.out);
    let expected = "(Preempting): Preempted in order to admit critical pod";
    eventually(MAX_WAIT, "the victim says why", ask, |said| said.contains(expected)).await?;
    // A restart of the agent ends no pod, though there is no room for one more.
    agent.restart()?;
    agent.apply("lowest", &lasting("lowest").with("priority", 1))?;
    let none = "no set of running pods found to reclaim resources: [(res: pods, q: 1), ]";
    let ask = async || Ok(agent.command(&["explain", "lowest"]).await?.out);
    eventually(MAX_WAIT, "the last one is rejected", ask, |said| said.contains(none)).await?;
    let still = cx.inspector().pod("middle").await?;
    ensure!(still.container("main")?.id == middle && still.runs("main"), "{still:#?}");
    Ok(())
}
