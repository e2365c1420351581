//! What fails, and how it says so.

use std::time::Duration;

use anyhow::Result;
use oarsman_cri_types::v1::ExecSyncRequest;

use super::cases;
use crate::stage::{assert_gone, image};
use crate::{Case, Pod, Stage};

pub(super) fn all() -> Vec<Case> {
    cases![
        describing_what_does_not_exist_says_gone,
        starting_what_does_not_exist_says_gone,
        stopping_and_removing_what_does_not_exist_is_fine,
        a_container_needs_a_sandbox_that_exists,
        a_container_needs_a_sandbox_that_is_ready,
        a_container_needs_an_image_that_is_on_the_node,
        a_container_is_started_once,
        a_program_that_does_not_exist_fails_to_start_and_leaves_an_exit,
    ]
}

const NOBODY: &str = "4e0b0d9c8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c";

async fn describing_what_does_not_exist_says_gone(stage: &Stage) -> Result<()> {
    assert_gone(&stage.runtime().pod_sandbox_status(NOBODY).await);
    assert_gone(&stage.runtime().container_status(NOBODY).await);
    assert_gone(&stage.runtime().container_stats(NOBODY).await);
    Ok(())
}

async fn starting_what_does_not_exist_says_gone(stage: &Stage) -> Result<()> {
    assert_gone(&stage.runtime().start_container(NOBODY).await);
    let request = ExecSyncRequest {
        container_id: NOBODY.to_owned(),
        cmd: vec!["/actor".to_owned()],
        timeout: 5,
    };
    assert_gone(&stage.runtime().exec_sync(request).await);
    assert_gone(&stage.runtime().reopen_container_log(NOBODY).await);
    Ok(())
}

async fn stopping_and_removing_what_does_not_exist_is_fine(stage: &Stage) -> Result<()> {
    stage.runtime().stop_container(NOBODY, Duration::from_secs(1)).await?;
    stage.runtime().remove_container(NOBODY).await?;
    stage.runtime().stop_pod_sandbox(NOBODY).await?;
    stage.runtime().remove_pod_sandbox(NOBODY).await?;
    stage.runtime().remove_image(image(&stage.harness().images().missing)).await?;
    Ok(())
}

async fn a_container_needs_a_sandbox_that_exists(stage: &Stage) -> Result<()> {
    let nowhere = Pod { id: NOBODY.to_owned(), config: stage.sandbox_config() };
    assert_gone(&stage.create(&nowhere, stage.script("main", &["forever"])).await);
    Ok(())
}

async fn a_container_needs_a_sandbox_that_is_ready(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    stage.runtime().stop_pod_sandbox(&pod.id).await?;
    assert!(stage.create(&pod, stage.script("main", &["forever"])).await.is_err());
    Ok(())
}

async fn a_container_needs_an_image_that_is_on_the_node(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let mut config = stage.script("main", &["forever"]);
    config.image = Some(image(&stage.harness().images().missing));
    assert!(stage.create(&pod, config).await.is_err());
    // The failure leaves the name free.
    stage.create(&pod, stage.script("main", &["forever"])).await?;
    Ok(())
}

async fn a_container_is_started_once(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["sleep:500ms"]).await?;
    assert!(stage.runtime().start_container(&id).await.is_err(), "while it runs");
    stage.until_exited(&id).await?;
    assert!(stage.runtime().start_container(&id).await.is_err(), "after it ended");
    Ok(())
}

async fn a_program_that_does_not_exist_fails_to_start_and_leaves_an_exit(
    stage: &Stage,
) -> Result<()> {
    let pod = stage.pod().await?;
    let mut config = stage.script("main", &[]);
    config.command = vec!["/no/such/program".to_owned()];
    let id = stage.create(&pod, config).await?;
    assert!(stage.runtime().start_container(&id).await.is_err());
    let status = stage.until_exited(&id).await?;
    assert_eq!((status.exit_code, status.reason.as_str()), (128, "StartError"));
    assert!(!status.message.is_empty());
    Ok(())
}
