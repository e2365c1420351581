//! Causes of images that are pulled one after the other.

use std::time::Duration;

use anyhow::Result;
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::{image, pod};
use oarsman_e2e::proxy::{CallFilter, RuleAction};
use oarsman_e2e::scenario::ScenarioContext;

use super::ask::{expected, until};

pub(super) const CAUSES: &[ExplanationCause] =
    &[ExplanationCause::Pulling, ExplanationCause::WaitingToPull];

const BEGINNING: Duration = Duration::from_secs(30);

pub(super) async fn a_queued_pull_is_explained(cx: &ScenarioContext) -> Result<()> {
    let proxy = cx.proxy().await?;
    let setup = cx.setup()?.through(&proxy).flag("max-parallel-image-pulls", "1");
    let agent = cx.start(setup)?;
    let held = proxy.add_rule(CallFilter::all().named("PullImage"), RuleAction::Hold);
    let apply = |name: &str| {
        agent.apply(name, &pod(name).container(image("main", &format!("rig.local/{name}:1"))))
    };
    apply("big")?;
    held.wait_until_held(1, BEGINNING).await?;
    apply("next")?;
    let big = expected(
        ExplanationCause::Pulling,
        "The image rig.local/big:1 of container main is being pulled, for N seconds now.",
        "Wait: a big image takes its time. If it takes too long, see how fast this machine reaches rig.local.",
    );
    until(&agent, "big", &big).await?;
    let next = expected(
        ExplanationCause::WaitingToPull,
        "The image rig.local/next:1 of container main waits for its turn, for N seconds now: as many images as may be are being pulled for others.",
        "Wait, or let more be pulled at once: --max-parallel-image-pulls.",
    );
    until(&agent, "next", &next).await
}
