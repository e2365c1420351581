//! Causes of the pod network: a CNI configuration that names a missing plugin, and none at all.

use std::fs;

use anyhow::Result;
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;

use super::ask::{expected, until};

pub(super) const CAUSES: &[ExplanationCause] =
    &[ExplanationCause::NetworkFails, ExplanationCause::NetworkNotReady];

pub(super) async fn a_network_that_is_broken_or_missing_is_named(
    cx: &ScenarioContext,
) -> Result<()> {
    let file = cx.rig().cni_configuration();
    let good = fs::read_to_string(&file)?;
    let agent = cx.agent()?;
    let broken = good.replace("\"bridge\"", "\"abridge\"");
    fs::write(&file, &broken)?;
    let apply = |name: &str| {
        agent.apply(name, &pod(name).container(script_container("main", &["forever"])))
    };
    apply("wired")?;
    let plugins = cx.rig().parts().cni.display().to_string();
    let fails = expected(
        ExplanationCause::NetworkFails,
        &format!(
            "The network of the pod cannot be made: plugin type=\"abridge\" failed (add): failed to find plugin \"abridge\" in path [{plugins}]; the next try is in N seconds."
        ),
        "Look at the CNI configuration (usually in /etc/cni/net.d) and its plugins (usually in /opt/cni/bin).",
    );
    until(&agent, "wired", &fails).await?;
    fs::remove_file(&file)?;
    apply("cut-off")?;
    let missing = expected(
        ExplanationCause::NetworkNotReady,
        "The runtime has no network for pods: cni plugin not initialized; the next try is in N seconds.",
        "Install a CNI configuration (usually in /etc/cni/net.d), or run the pod on the node's own network (spec.hostNetwork).",
    );
    until(&agent, "cut-off", &missing).await?;
    fs::write(&file, good)?;
    let runs = expected(
        ExplanationCause::Running,
        "The pod runs and is ready, for N seconds now.",
        "Nothing to do. `oarsman logs -c main {pod}` shows what it says.",
    );
    until(&agent, "wired", &runs).await?;
    until(&agent, "cut-off", &runs).await
}
