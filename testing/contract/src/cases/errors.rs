//! Cases on calls that fail, and their error codes.

use std::time::Duration;

use anyhow::Result;
use oarsman_cri_types::v1::ExecSyncRequest;

use super::cases;
use crate::context::{assert_gone, image};
use crate::{CaseContext, ContractCase, TestSandbox};

pub(super) fn all() -> Vec<ContractCase> {
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

const UNKNOWN_ID: &str = "4e0b0d9c8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c";

async fn describing_what_does_not_exist_says_gone(cx: &CaseContext) -> Result<()> {
    assert_gone(&cx.runtime().pod_sandbox_status(UNKNOWN_ID).await);
    assert_gone(&cx.runtime().container_status(UNKNOWN_ID).await);
    assert_gone(&cx.runtime().container_stats(UNKNOWN_ID).await);
    Ok(())
}

async fn starting_what_does_not_exist_says_gone(cx: &CaseContext) -> Result<()> {
    assert_gone(&cx.runtime().start_container(UNKNOWN_ID).await);
    let request = ExecSyncRequest {
        container_id: UNKNOWN_ID.to_owned(),
        cmd: vec!["/script".to_owned()],
        timeout: 5,
    };
    assert_gone(&cx.runtime().exec_sync(request).await);
    assert_gone(&cx.runtime().reopen_container_log(UNKNOWN_ID).await);
    Ok(())
}

async fn stopping_and_removing_what_does_not_exist_is_fine(cx: &CaseContext) -> Result<()> {
    cx.runtime().stop_container(UNKNOWN_ID, Duration::from_secs(1)).await?;
    cx.runtime().remove_container(UNKNOWN_ID).await?;
    cx.runtime().stop_pod_sandbox(UNKNOWN_ID).await?;
    cx.runtime().remove_pod_sandbox(UNKNOWN_ID).await?;
    cx.runtime().remove_image(image(&cx.harness().images().missing)).await?;
    Ok(())
}

async fn a_container_needs_a_sandbox_that_exists(cx: &CaseContext) -> Result<()> {
    let nowhere = TestSandbox { id: UNKNOWN_ID.to_owned(), config: cx.sandbox_config() };
    assert_gone(&cx.create(&nowhere, cx.script("main", &["forever"])).await);
    Ok(())
}

async fn a_container_needs_a_sandbox_that_is_ready(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    cx.runtime().stop_pod_sandbox(&pod.id).await?;
    assert!(cx.create(&pod, cx.script("main", &["forever"])).await.is_err());
    Ok(())
}

async fn a_container_needs_an_image_that_is_on_the_node(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let mut config = cx.script("main", &["forever"]);
    config.image = Some(image(&cx.harness().images().missing));
    assert!(cx.create(&pod, config).await.is_err());
    // The failure leaves the name free.
    cx.create(&pod, cx.script("main", &["forever"])).await?;
    Ok(())
}

async fn a_container_is_started_once(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["sleep:500ms"]).await?;
    assert!(cx.runtime().start_container(&id).await.is_err(), "while it runs");
    cx.until_exited(&id).await?;
    assert!(cx.runtime().start_container(&id).await.is_err(), "after it ended");
    Ok(())
}

async fn a_program_that_does_not_exist_fails_to_start_and_leaves_an_exit(
    cx: &CaseContext,
) -> Result<()> {
    let pod = cx.pod().await?;
    let mut config = cx.script("main", &[]);
    config.command = vec!["/no/such/program".to_owned()];
    let id = cx.create(&pod, config).await?;
    assert!(cx.runtime().start_container(&id).await.is_err());
    let status = cx.until_exited(&id).await?;
    assert_eq!((status.exit_code, status.reason.as_str()), (128, "StartError"));
    assert!(!status.message.is_empty());
    Ok(())
}
