//! The cause of a runtime that does not run.

use anyhow::Result;
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;

use super::ask::{expected, until};

pub(super) const CAUSES: &[ExplanationCause] = &[ExplanationCause::RuntimeDown];

pub(super) async fn a_runtime_that_is_down_is_named(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    agent.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    let runs = expected(
        ExplanationCause::Running,
        "The pod runs and is ready, for N seconds now.",
        "Nothing to do. `oarsman logs -c main {pod}` shows what it says.",
    );
    until(&agent, "web", &runs).await?;
    cx.rig().kill()?;
    let socket = cx.rig().socket().display().to_string();
    let down = expected(
        ExplanationCause::RuntimeDown,
        &format!(
            "Nobody can tell how the pod is: {{runtime}} at unix://{socket} has not answered for N seconds (Connection refused (os error 111))."
        ),
        "Start it, or see why it does not answer: `journalctl -u {unit}`. Containers that run go on meanwhile.",
    );
    until(&agent, "web", &down).await?;
    cx.rig().restart().await?;
    until(&agent, "web", &runs).await
}
