//! The order of init containers, and of pods of one name.

use anyhow::{Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;

use super::starts::MAX_WAIT;

pub(super) async fn init_containers_run_one_after_the_other(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let manifest = pod("web")
        .init(script_container("first", &["sleep:500ms"]))
        .init(script_container("second", &["sleep:500ms"]))
        .container(script_container("main", &["forever"]));
    agent.apply("web", &manifest)?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let (first, second, main) =
        (seen.container("first")?, seen.container("second")?, seen.container("main")?);
    ensure!(first.finished <= second.created, "{seen:#?}");
    ensure!(second.finished <= main.created, "{seen:#?}");
    ensure!(first.exit_code == 0 && second.exit_code == 0, "{seen:#?}");
    Ok(())
}

pub(super) async fn two_pods_of_one_name_run_in_turn(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let manifest = |uid: &str| {
        pod("web")
            .with_metadata("uid", uid)
            .with("terminationGracePeriodSeconds", 3)
            .container(script_container("main", &["on-term:sleep:1s,exit:0", "forever"]))
    };
    agent.apply("web", &manifest("first-uid"))?;
    let look = async || cx.inspector().pod("web").await;
    eventually(MAX_WAIT, "the first runs", look, |pod| pod.runs("main")).await?;
    agent.apply("web", &manifest("second-uid"))?;
    let uid = "second-uid";
    let second =
        eventually(MAX_WAIT, "the second runs", look, |pod| pod.uid() == uid && pod.runs("main"));
    // From now on until the second runs, never two at once.
    let alone = async {
        loop {
            let pods = cx.inspector().pods().await?;
            let running: Vec<&str> =
                pods.iter().filter(|pod| pod.runs("main")).map(|pod| pod.uid()).collect();
            ensure!(running.len() < 2, "two at once: {running:?}");
        }
    };
    tokio::select! {
        second = second => second.map(drop),
        together = alone => together,
    }
}
