//! Containers: made, started, ended, described, removed.

use anyhow::Result;
use oarsman_cri_types::v1::{ContainerState, Mount};

use super::cases;
use crate::stage::{assert_gone, image, variable};
use crate::{Case, Stage};

pub(super) fn all() -> Vec<Case> {
    cases![
        a_container_is_created_then_running_then_exited,
        a_container_is_described_as_it_was_asked_for,
        an_exit_code_and_its_reason_are_kept,
        a_container_killed_by_a_signal_exits_with_128_and_its_number,
        environment_and_arguments_reach_the_program,
        the_image_gives_user_environment_and_working_directory,
        a_command_replaces_the_entrypoint,
        a_mounted_file_is_written_through,
        a_read_only_mount_cannot_be_written,
        a_removed_container_is_gone_and_its_sandbox_stays,
        removing_a_running_container_kills_it,
        removing_a_created_container_is_fine,
        removing_a_container_may_be_repeated,
        one_container_ends_and_the_other_runs_on,
        a_container_has_measures,
    ]
}

async fn a_container_is_created_then_running_then_exited(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let id = stage.create(&pod, stage.script("main", &["forever"])).await?;
    let created = stage.runtime().container_status(&id).await?;
    assert_eq!(created.state(), ContainerState::ContainerCreated);
    assert!(created.created_at > 0 && created.started_at == 0, "{created:?}");
    stage.runtime().start_container(&id).await?;
    let running = stage.runtime().container_status(&id).await?;
    assert_eq!(running.state(), ContainerState::ContainerRunning);
    assert!(running.started_at >= running.created_at, "{running:?}");
    assert_eq!(running.finished_at, 0, "{running:?}");
    stage.runtime().stop_container(&id, std::time::Duration::ZERO).await?;
    let exited = stage.runtime().container_status(&id).await?;
    assert_eq!(exited.state(), ContainerState::ContainerExited);
    assert_eq!(exited.started_at, running.started_at);
    assert!(exited.finished_at >= exited.started_at, "{exited:?}");
    Ok(())
}

async fn a_container_is_described_as_it_was_asked_for(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let mut config = stage.script("main", &["forever"]);
    config.metadata.get_or_insert_default().attempt = 7;
    let id = stage.create(&pod, config.clone()).await?;
    let status = stage.runtime().container_status(&id).await?;
    assert_eq!(status.id, id);
    assert_eq!(status.metadata, config.metadata);
    assert_eq!(status.labels, config.labels);
    assert_eq!(status.annotations, config.annotations);
    assert_eq!(status.image.unwrap_or_default().image, stage.harness().images().actor);
    assert!(!status.image_ref.is_empty());
    assert_eq!(status.log_path, format!("{}/main.log", pod.config.log_directory));
    Ok(())
}

async fn an_exit_code_and_its_reason_are_kept(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    for (name, script, code, reason) in
        [("well", "exit:0", 0, "Completed"), ("badly", "exit:3", 3, "Error")]
    {
        let id = stage.start(&pod, stage.script(name, &[script])).await?;
        let status = stage.until_exited(&id).await?;
        assert_eq!((status.exit_code, status.reason.as_str()), (code, reason));
    }
    Ok(())
}

async fn a_container_killed_by_a_signal_exits_with_128_and_its_number(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["on-term:ignore", "forever"]).await?;
    stage.runtime().stop_container(&id, std::time::Duration::ZERO).await?;
    let status = stage.until_exited(&id).await?;
    assert_eq!((status.exit_code, status.reason.as_str()), (137, "Error"));
    Ok(())
}

async fn environment_and_arguments_reach_the_program(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let mut config = stage.script("main", &["env:WORD", "out:two words"]);
    config.envs = vec![variable("WORD", "from=the pod")];
    let id = stage.start(&pod, config).await?;
    assert_eq!(stage.until_exited(&id).await?.exit_code, 0);
    let log = stage.until_log(&pod, "main.log", "two words").await?;
    assert!(log.contains("from=the pod"), "{log}");
    Ok(())
}

async fn the_image_gives_user_environment_and_working_directory(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let mut config = stage.script("main", &["id", "env:GREETING", "pwd"]);
    config.image = Some(image(&stage.harness().images().actor_as_user));
    let id = stage.start(&pod, config).await?;
    assert_eq!(stage.until_exited(&id).await?.exit_code, 0);
    let log = stage.until_log(&pod, "main.log", "/tmp").await?;
    assert!(log.contains("stdout F 1000:"), "{log}");
    assert!(log.contains("stdout F hello"), "{log}");
    Ok(())
}

async fn a_command_replaces_the_entrypoint(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let mut config = stage.script("main", &["exit:4"]);
    config.command = vec!["/actor".to_owned(), "out:first".to_owned()];
    let id = stage.start(&pod, config).await?;
    assert_eq!(stage.until_exited(&id).await?.exit_code, 4);
    stage.until_log(&pod, "main.log", "first").await?;
    Ok(())
}

async fn a_mounted_file_is_written_through(stage: &Stage) -> Result<()> {
    let (exit_code, content) = write_into_mount(stage, false).await?;
    assert_eq!((exit_code, content.as_str()), (0, "last words"));
    Ok(())
}

async fn a_read_only_mount_cannot_be_written(stage: &Stage) -> Result<()> {
    let (exit_code, content) = write_into_mount(stage, true).await?;
    assert_eq!((exit_code, content.as_str()), (1, ""));
    Ok(())
}

async fn write_into_mount(stage: &Stage, readonly: bool) -> Result<(i32, String)> {
    let pod = stage.pod().await?;
    let file = stage.directory().join("message");
    stage.harness().write(&file, b"").await?;
    let mut config = stage.script("main", &["write:/message=last words"]);
    config.mounts = vec![Mount {
        container_path: "/message".to_owned(),
        host_path: file.to_string_lossy().into_owned(),
        readonly,
        ..Mount::default()
    }];
    let id = stage.start(&pod, config).await?;
    let status = stage.until_exited(&id).await?;
    let content = stage.harness().read(&file).await?;
    Ok((status.exit_code, String::from_utf8(content)?))
}

async fn a_removed_container_is_gone_and_its_sandbox_stays(stage: &Stage) -> Result<()> {
    let (pod, id) = stage.run(&["exit:0"]).await?;
    stage.until_exited(&id).await?;
    stage.runtime().remove_container(&id).await?;
    assert_gone(&stage.runtime().container_status(&id).await);
    stage.runtime().pod_sandbox_status(&pod.id).await?;
    Ok(())
}

async fn removing_a_running_container_kills_it(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["on-term:ignore", "forever"]).await?;
    stage.runtime().remove_container(&id).await?;
    assert_gone(&stage.runtime().container_status(&id).await);
    Ok(())
}

async fn removing_a_created_container_is_fine(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let id = stage.create(&pod, stage.script("main", &["forever"])).await?;
    stage.runtime().remove_container(&id).await?;
    assert_gone(&stage.runtime().container_status(&id).await);
    Ok(())
}

async fn removing_a_container_may_be_repeated(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["exit:0"]).await?;
    stage.until_exited(&id).await?;
    for _ in 0..2 {
        stage.runtime().remove_container(&id).await?;
    }
    Ok(())
}

async fn one_container_ends_and_the_other_runs_on(stage: &Stage) -> Result<()> {
    let pod = stage.pod().await?;
    let lasting = stage.start(&pod, stage.script("lasting", &["forever"])).await?;
    let brief = stage.start(&pod, stage.script("brief", &["exit:1"])).await?;
    stage.until_exited(&brief).await?;
    assert_eq!(stage.state(&lasting).await?, ContainerState::ContainerRunning);
    Ok(())
}

async fn a_container_has_measures(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["alloc:4Mi", "forever"]).await?;
    let stats = stage.runtime().container_stats(&id).await?;
    assert_eq!(stats.attributes.unwrap_or_default().id, id);
    let memory = stats.memory.and_then(|m| m.working_set_bytes).unwrap_or_default().value;
    assert!(memory > 0, "working set {memory}");
    let listed = stage.runtime().list_container_stats(None).await?;
    let found = listed.iter().filter_map(|s| s.attributes.as_ref()).any(|a| a.id == id);
    assert!(found, "{} containers measured, {id} not among them", listed.len());
    Ok(())
}
