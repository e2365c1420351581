//! `oarsman run` is interrupted at any moment.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::run_process::{RunProcess, example};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::leaks::Snapshot;

const MAX_WAIT: Duration = Duration::from_secs(60);
/// By then all pods run, on any machine that is not overloaded.
const LATEST: u64 = 2_500;
const TIMES: u64 = 10;

/// Three pods with all that can be half made: a volume, an init container, a sidecar, hooks.
fn places(cx: &ScenarioContext) -> Result<[PathBuf; 3]> {
    let busy = pod("busy")
        .container(script_container("one", &["forever"]))
        .container(script_container("two", &["forever"]));
    let written = cx.scratch().join("busy.yaml");
    std::fs::write(&written, busy.text())?;
    Ok([example("config.yaml"), example("init.yaml"), written])
}

pub(super) async fn ten_interruptions_at_random_leave_nothing(cx: &ScenarioContext) -> Result<()> {
    let places = places(cx)?;
    let places = places.each_ref().map(PathBuf::as_path);
    let before = Snapshot::take(cx.rig()).await?;
    let dice = RandomState::new();
    for time in 0..TIMES {
        // One in each tenth of the time, so that early and late ones are among them.
        let tenth = LATEST / TIMES;
        let moment = Duration::from_millis(tenth * time + dice.hash_one(time) % tenth);
        let mut process = RunProcess::start(cx, &places, &[])?;
        tokio::time::sleep(moment).await;
        process.interrupt()?;
        let code = process.wait_exit(MAX_WAIT).await?;
        let said = process.output()?;
        // Before its handlers are installed it has started nothing, and the signal just ends it.
        ensure!(code == 0 || (code == 130 && said.is_empty()), "{moment:?}: {code}: {said}");
        drop(process);
        before
            .compare_until_clean(Duration::from_secs(5))
            .await
            .with_context(|| format!("interrupted after {moment:?}, it had said:\n{said}"))?;
    }
    Ok(())
}

pub(super) async fn a_second_interruption_leaves_pods_and_says_so(
    cx: &ScenarioContext,
) -> Result<()> {
    let stubborn = pod("stubborn")
        .with("terminationGracePeriodSeconds", 8)
        .container(script_container("main", &["on-term:ignore", "forever"]));
    let written = cx.scratch().join("stubborn.yaml");
    std::fs::write(&written, stubborn.text())?;
    let mut process = RunProcess::start(cx, &[&written], &[])?;
    process.wait_for_output("stubborn: running", MAX_WAIT).await?;
    process.interrupt()?;
    process.wait_for_output("stubborn: stopping", MAX_WAIT).await?;
    let mut again = tokio::time::interval(Duration::from_millis(500));
    let code = loop {
        again.tick().await;
        process.interrupt()?;
        if let Ok(code) = process.wait_exit(Duration::from_millis(100)).await {
            break code;
        }
    };
    let said = process.output()?;
    ensure!(code == 1 && said.contains("1 pods are left as they are"), "{code}: {said}");
    // The next run finds what was left, and removes it.
    let mut process = RunProcess::start(cx, &[&written], &[])?;
    process.wait_for_output("stubborn: running", MAX_WAIT).await?;
    process.interrupt()?;
    ensure!(process.wait_exit(MAX_WAIT).await? == 0, "{}", process.output()?);
    Ok(())
}
