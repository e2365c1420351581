//! Names are reserved: what keeps an agent that lost its memory from making a thing twice.

use anyhow::Result;
use oarsman_cri_types::v1::{PodSandboxFilter, RunPodSandboxRequest};

use super::cases;
use crate::{Case, Stage};

pub(super) fn all() -> Vec<Case> {
    cases![
        a_sandbox_name_is_taken_until_it_is_removed,
        the_next_attempt_is_another_sandbox_name,
        a_container_name_is_taken_until_it_is_removed,
        the_next_attempt_is_another_container_name,
        the_same_container_name_in_another_pod_is_free,
    ]
}

async fn a_sandbox_name_is_taken_until_it_is_removed(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let again = RunPodSandboxRequest { config: Some(pod.config.clone()), ..Default::default() };
    assert!(stage.runtime().run_pod_sandbox(again.clone()).await.is_err(), "while it is ready");
    stage.runtime().stop_pod_sandbox(&pod.id).await?;
    assert!(stage.runtime().run_pod_sandbox(again).await.is_err(), "while it is stopped");
    stage.runtime().remove_pod_sandbox(&pod.id).await?;
    stage.pod_with(pod.config.clone()).await?;
    Ok(())
}

async fn the_next_attempt_is_another_sandbox_name(stage: &Stage) -> Result<()> {
    let first = stage.pod().await?;
    let mut config = first.config.clone();
    config.metadata.get_or_insert_default().attempt = 1;
    let second = stage.pod_with(config).await?;
    assert_ne!(first.id, second.id);
    let filter =
        PodSandboxFilter { label_selector: first.config.labels.clone(), ..Default::default() };
    assert_eq!(stage.runtime().list_pod_sandboxes(Some(filter)).await?.len(), 2);
    Ok(())
}

async fn a_container_name_is_taken_until_it_is_removed(stage: &Stage) -> Result<()> {
    let (pod, id) = stage.run(&["exit:0"]).await?;
    assert!(stage.create(&pod, stage.script("main", &["exit:0"])).await.is_err());
    stage.until_exited(&id).await?;
    assert!(stage.create(&pod, stage.script("main", &["exit:0"])).await.is_err());
    stage.runtime().remove_container(&id).await?;
    stage.create(&pod, stage.script("main", &["exit:0"])).await?;
    Ok(())
}

async fn the_next_attempt_is_another_container_name(stage: &Stage) -> Result<()> {
    let (pod, first) = stage.run(&["exit:0"]).await?;
    let mut config = stage.script("main", &["exit:0"]);
    config.metadata.get_or_insert_default().attempt = 1;
    let second = stage.start(&pod, config).await?;
    assert_ne!(first, second);
    let status = stage.until_exited(&second).await?;
    assert_eq!(status.metadata.unwrap_or_default().attempt, 1);
    Ok(())
}

async fn the_same_container_name_in_another_pod_is_free(stage: &Stage) -> Result<()> {
    let (_, first) = stage.run(&["exit:0"]).await?;
    let (_, second) = stage.run(&["exit:0"]).await?;
    assert_ne!(first, second);
    Ok(())
}
