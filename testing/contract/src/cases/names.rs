//! Cases on reserved names, which keep a restarted agent from making a sandbox or container twice.

use anyhow::Result;
use oarsman_cri_types::v1::{PodSandboxFilter, RunPodSandboxRequest};

use super::cases;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        a_sandbox_name_is_taken_until_it_is_removed,
        the_next_attempt_is_another_sandbox_name,
        a_container_name_is_taken_until_it_is_removed,
        the_next_attempt_is_another_container_name,
        the_same_container_name_in_another_pod_is_free,
    ]
}

async fn a_sandbox_name_is_taken_until_it_is_removed(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let again = RunPodSandboxRequest { config: Some(pod.config.clone()), ..Default::default() };
    assert!(cx.runtime().run_pod_sandbox(again.clone()).await.is_err(), "while it is ready");
    cx.runtime().stop_pod_sandbox(&pod.id).await?;
    assert!(cx.runtime().run_pod_sandbox(again).await.is_err(), "while it is stopped");
    cx.runtime().remove_pod_sandbox(&pod.id).await?;
    cx.pod_with(pod.config.clone()).await?;
    Ok(())
}

async fn the_next_attempt_is_another_sandbox_name(cx: &CaseContext) -> Result<()> {
    let first = cx.pod().await?;
    let mut config = first.config.clone();
    config.metadata.get_or_insert_default().attempt = 1;
    let second = cx.pod_with(config).await?;
    assert_ne!(first.id, second.id);
    let filter =
        PodSandboxFilter { label_selector: first.config.labels.clone(), ..Default::default() };
    assert_eq!(cx.runtime().list_pod_sandboxes(Some(filter)).await?.len(), 2);
    Ok(())
}

async fn a_container_name_is_taken_until_it_is_removed(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["exit:0"]).await?;
    assert!(cx.create(&pod, cx.script("main", &["exit:0"])).await.is_err());
    cx.until_exited(&id).await?;
    assert!(cx.create(&pod, cx.script("main", &["exit:0"])).await.is_err());
    cx.runtime().remove_container(&id).await?;
    cx.create(&pod, cx.script("main", &["exit:0"])).await?;
    Ok(())
}

async fn the_next_attempt_is_another_container_name(cx: &CaseContext) -> Result<()> {
    let (pod, first) = cx.run(&["exit:0"]).await?;
    let mut config = cx.script("main", &["exit:0"]);
    config.metadata.get_or_insert_default().attempt = 1;
    let second = cx.start(&pod, config).await?;
    assert_ne!(first, second);
    let status = cx.until_exited(&second).await?;
    assert_eq!(status.metadata.unwrap_or_default().attempt, 1);
    Ok(())
}

async fn the_same_container_name_in_another_pod_is_free(cx: &CaseContext) -> Result<()> {
    let (_, first) = cx.run(&["exit:0"]).await?;
    let (_, second) = cx.run(&["exit:0"]).await?;
    assert_ne!(first, second);
    Ok(())
}
