//! Causes of manifests that cannot be parsed, and of pods that do not exist.

use anyhow::Result;
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::inspect::{ObservedPod, eventually};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::json;

use super::ask::{expected, until};

pub(super) const CAUSES: &[ExplanationCause] = &[
    ExplanationCause::ManifestBroken,
    ExplanationCause::NoPodOfManifest,
    ExplanationCause::NoSuchPod,
    ExplanationCause::Gone,
];

pub(super) async fn manifests_that_cannot_be_parsed_are_named(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let forever = || script_container("main", &["forever"]);
    let nobody = expected(
        ExplanationCause::NoSuchPod,
        "No pod is called web here: there is no pod at all.",
        "Check the name (`oarsman ps`), or whether its manifest lies where this agent looks.",
    );
    until(&agent, "web", &nobody).await?;
    agent.apply("web", &pod("web").container(forever()))?;
    let runs = expected(
        ExplanationCause::Running,
        "The pod runs and is ready, for N seconds now.",
        "Nothing to do. `oarsman logs -c main {pod}` shows what it says.",
    );
    until(&agent, "web", &runs).await?;
    let cut_off = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: we";
    let invalid = "the pod is not valid: spec.containers: Required value: a pod has at least one container; correct these fields";
    agent.manifests().write("web", cut_off)?;
    let broken = expected(
        ExplanationCause::ManifestBroken,
        &format!(
            "The pod runs as its manifest was before; what {{place}} holds now is not understood: {invalid}."
        ),
        "Correct {place}; until then the pod goes on as it is.",
    );
    until(&agent, "web", &broken).await?;
    agent.manifests().write("shop", cut_off)?;
    let none = |why: &str| {
        expected(
            ExplanationCause::NoPodOfManifest,
            &format!("No pod comes of {{place}}: {why}."),
            "Correct {place}; it is read again when it changes.",
        )
    };
    until(&agent, "shop", &none(invalid)).await?;
    let reference =
        json!([{ "name": "A", "valueFrom": { "configMapKeyRef": { "name": "x", "key": "y" } } }]);
    agent.apply("refers", &pod("refers").container(forever().with("env", reference)))?;
    until(&agent, "refers", &none("static pods may not reference configmaps: only an API server has them; take that out of the pod")).await?;
    agent.manifests().remove("web")?;
    let look = async || cx.inspector().pod("web").await;
    eventually(std::time::Duration::from_secs(60), "it is gone", look, ObservedPod::is_gone)
        .await?;
    let gone = expected(
        ExplanationCause::Gone,
        "Pod web-node was here and is gone; the last thing that happened to it, N seconds ago: Stopping container main.",
        "If it should be here, put its manifest back; `oarsman events` shows what happened.",
    );
    until(&agent, "web", &gone).await
}
