//! Cases on stopping a container: SIGTERM first, SIGKILL after the grace period.

use std::time::Duration;

use anyhow::Result;
use oarsman_cri_types::v1::ContainerState;
use tokio::time::Instant;

use super::cases;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        a_container_that_handles_sigterm_stops_with_its_own_exit_code,
        a_container_may_take_its_whole_grace_period_to_stop,
        a_container_that_ignores_sigterm_is_killed_after_the_grace_period,
        no_grace_kills_at_once,
        stopping_an_ended_container_succeeds_and_changes_nothing,
        stopping_a_container_that_never_started_succeeds,
        a_second_stop_with_less_grace_ends_it_earlier,
    ]
}

const LONG: Duration = Duration::from_secs(30);

async fn a_container_that_handles_sigterm_stops_with_its_own_exit_code(
    cx: &CaseContext,
) -> Result<()> {
    let (_, id) = cx.run_until_ready(&["on-term:exit:5", "forever"]).await?;
    let begun = Instant::now();
    cx.runtime().stop_container(&id, LONG).await?;
    assert!(begun.elapsed() < LONG, "it did not wait for the grace to pass");
    assert_eq!(cx.runtime().container_status(&id).await?.exit_code, 5);
    Ok(())
}

async fn a_container_may_take_its_whole_grace_period_to_stop(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run_until_ready(&["on-term:sleep:1s,exit:6", "forever"]).await?;
    let begun = Instant::now();
    cx.runtime().stop_container(&id, LONG).await?;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(cx.runtime().container_status(&id).await?.exit_code, 6);
    Ok(())
}

async fn a_container_that_ignores_sigterm_is_killed_after_the_grace_period(
    cx: &CaseContext,
) -> Result<()> {
    let (_, id) = cx.run_until_ready(&["on-term:ignore", "forever"]).await?;
    let begun = Instant::now();
    cx.runtime().stop_container(&id, Duration::from_secs(2)).await?;
    assert!(begun.elapsed() >= Duration::from_secs(2), "after {:?}", begun.elapsed());
    assert_eq!(cx.runtime().container_status(&id).await?.exit_code, 137);
    Ok(())
}

async fn no_grace_kills_at_once(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run_until_ready(&["on-term:exit:5", "forever"]).await?;
    cx.runtime().stop_container(&id, Duration::ZERO).await?;
    assert_eq!(cx.runtime().container_status(&id).await?.exit_code, 137);
    Ok(())
}

async fn stopping_an_ended_container_succeeds_and_changes_nothing(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["exit:3"]).await?;
    let before = cx.until_exited(&id).await?;
    for _ in 0..2 {
        cx.runtime().stop_container(&id, LONG).await?;
    }
    let after = cx.runtime().container_status(&id).await?;
    assert_eq!((after.exit_code, after.finished_at), (3, before.finished_at));
    Ok(())
}

async fn stopping_a_container_that_never_started_succeeds(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let id = cx.create(&pod, cx.script("main", &["forever"])).await?;
    cx.runtime().stop_container(&id, LONG).await?;
    assert_ne!(cx.state(&id).await?, ContainerState::ContainerRunning);
    Ok(())
}

async fn a_second_stop_with_less_grace_ends_it_earlier(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run_until_ready(&["on-term:ignore", "forever"]).await?;
    let begun = Instant::now();
    let (runtime, patient) = (cx.runtime(), id.clone());
    let first = tokio::spawn(async move { runtime.stop_container(&patient, LONG).await });
    cx.runtime().stop_container(&id, Duration::from_secs(1)).await?;
    first.await??;
    assert!(begun.elapsed() < LONG, "after {:?}", begun.elapsed());
    assert_eq!(cx.runtime().container_status(&id).await?.exit_code, 137);
    Ok(())
}
