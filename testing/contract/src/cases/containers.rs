//! Cases on containers: creation, start, end, status, removal.

use anyhow::Result;
use oarsman_cri_types::v1::{ContainerState, Mount};

use super::cases;
use crate::context::{assert_gone, image, variable};
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
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
        a_container_has_stats,
    ]
}

async fn a_container_is_created_then_running_then_exited(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let id = cx.create(&pod, cx.script("main", &["forever"])).await?;
    let created = cx.runtime().container_status(&id).await?;
    assert_eq!(created.state(), ContainerState::ContainerCreated);
    assert!(created.created_at > 0 && created.started_at == 0, "{created:?}");
    cx.runtime().start_container(&id).await?;
    let running = cx.runtime().container_status(&id).await?;
    assert_eq!(running.state(), ContainerState::ContainerRunning);
    assert!(running.started_at >= running.created_at, "{running:?}");
    assert_eq!(running.finished_at, 0, "{running:?}");
    cx.runtime().stop_container(&id, std::time::Duration::ZERO).await?;
    let exited = cx.runtime().container_status(&id).await?;
    assert_eq!(exited.state(), ContainerState::ContainerExited);
    assert_eq!(exited.started_at, running.started_at);
    assert!(exited.finished_at >= exited.started_at, "{exited:?}");
    Ok(())
}

async fn a_container_is_described_as_it_was_asked_for(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let mut config = cx.script("main", &["forever"]);
    config.metadata.get_or_insert_default().attempt = 7;
    let id = cx.create(&pod, config.clone()).await?;
    let status = cx.runtime().container_status(&id).await?;
    assert_eq!(status.id, id);
    assert_eq!(status.metadata, config.metadata);
    assert_eq!(status.labels, config.labels);
    assert_eq!(status.annotations, config.annotations);
    assert_eq!(status.image.unwrap_or_default().image, cx.harness().images().script);
    assert!(!status.image_ref.is_empty());
    assert_eq!(status.log_path, format!("{}/main.log", pod.config.log_directory));
    Ok(())
}

async fn an_exit_code_and_its_reason_are_kept(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    for (name, script, code, reason) in
        [("well", "exit:0", 0, "Completed"), ("badly", "exit:3", 3, "Error")]
    {
        let id = cx.start(&pod, cx.script(name, &[script])).await?;
        let status = cx.until_exited(&id).await?;
        assert_eq!((status.exit_code, status.reason.as_str()), (code, reason));
    }
    Ok(())
}

async fn a_container_killed_by_a_signal_exits_with_128_and_its_number(
    cx: &CaseContext,
) -> Result<()> {
    let (_, id) = cx.run(&["on-term:ignore", "forever"]).await?;
    cx.runtime().stop_container(&id, std::time::Duration::ZERO).await?;
    let status = cx.until_exited(&id).await?;
    assert_eq!((status.exit_code, status.reason.as_str()), (137, "Error"));
    Ok(())
}

async fn environment_and_arguments_reach_the_program(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let mut config = cx.script("main", &["env:WORD", "out:two words"]);
    config.envs = vec![variable("WORD", "from=the pod")];
    let id = cx.start(&pod, config).await?;
    assert_eq!(cx.until_exited(&id).await?.exit_code, 0);
    let log = cx.until_log(&pod, "main.log", "two words").await?;
    assert!(log.contains("from=the pod"), "{log}");
    Ok(())
}

async fn the_image_gives_user_environment_and_working_directory(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let mut config = cx.script("main", &["id", "env:GREETING", "pwd"]);
    config.image = Some(image(&cx.harness().images().script_as_user));
    let id = cx.start(&pod, config).await?;
    assert_eq!(cx.until_exited(&id).await?.exit_code, 0);
    let log = cx.until_log(&pod, "main.log", "/tmp").await?;
    assert!(log.contains("stdout F 1000:"), "{log}");
    assert!(log.contains("stdout F hello"), "{log}");
    Ok(())
}

async fn a_command_replaces_the_entrypoint(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let mut config = cx.script("main", &["exit:4"]);
    config.command = vec!["/script".to_owned(), "out:first".to_owned()];
    let id = cx.start(&pod, config).await?;
    assert_eq!(cx.until_exited(&id).await?.exit_code, 4);
    cx.until_log(&pod, "main.log", "first").await?;
    Ok(())
}

async fn a_mounted_file_is_written_through(cx: &CaseContext) -> Result<()> {
    let (exit_code, content) = write_into_mount(cx, false).await?;
    assert_eq!((exit_code, content.as_str()), (0, "last words"));
    Ok(())
}

async fn a_read_only_mount_cannot_be_written(cx: &CaseContext) -> Result<()> {
    let (exit_code, content) = write_into_mount(cx, true).await?;
    assert_eq!((exit_code, content.as_str()), (1, ""));
    Ok(())
}

async fn write_into_mount(cx: &CaseContext, readonly: bool) -> Result<(i32, String)> {
    let pod = cx.pod().await?;
    let file = cx.directory().join("message");
    cx.harness().write(&file, b"").await?;
    let mut config = cx.script("main", &["write:/message=last words"]);
    config.mounts = vec![Mount {
        container_path: "/message".to_owned(),
        host_path: file.to_string_lossy().into_owned(),
        readonly,
        ..Mount::default()
    }];
    let id = cx.start(&pod, config).await?;
    let status = cx.until_exited(&id).await?;
    let content = cx.harness().read(&file).await?;
    Ok((status.exit_code, String::from_utf8(content)?))
}

async fn a_removed_container_is_gone_and_its_sandbox_stays(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["exit:0"]).await?;
    cx.until_exited(&id).await?;
    cx.runtime().remove_container(&id).await?;
    assert_gone(&cx.runtime().container_status(&id).await);
    cx.runtime().pod_sandbox_status(&pod.id).await?;
    Ok(())
}

async fn removing_a_running_container_kills_it(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["on-term:ignore", "forever"]).await?;
    cx.runtime().remove_container(&id).await?;
    assert_gone(&cx.runtime().container_status(&id).await);
    Ok(())
}

async fn removing_a_created_container_is_fine(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let id = cx.create(&pod, cx.script("main", &["forever"])).await?;
    cx.runtime().remove_container(&id).await?;
    assert_gone(&cx.runtime().container_status(&id).await);
    Ok(())
}

async fn removing_a_container_may_be_repeated(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["exit:0"]).await?;
    cx.until_exited(&id).await?;
    for _ in 0..2 {
        cx.runtime().remove_container(&id).await?;
    }
    Ok(())
}

async fn one_container_ends_and_the_other_runs_on(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let lasting = cx.start(&pod, cx.script("lasting", &["forever"])).await?;
    let brief = cx.start(&pod, cx.script("brief", &["exit:1"])).await?;
    cx.until_exited(&brief).await?;
    assert_eq!(cx.state(&lasting).await?, ContainerState::ContainerRunning);
    Ok(())
}

async fn a_container_has_stats(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["alloc:4Mi", "forever"]).await?;
    let stats = cx.runtime().container_stats(&id).await?;
    assert_eq!(stats.attributes.unwrap_or_default().id, id);
    let memory = stats.memory.and_then(|m| m.working_set_bytes).unwrap_or_default().value;
    assert!(memory > 0, "working set {memory}");
    let listed = cx.runtime().list_container_stats(None).await?;
    let found = listed.iter().filter_map(|s| s.attributes.as_ref()).any(|a| a.id == id);
    assert!(found, "{} containers measured, {id} not among them", listed.len());
    Ok(())
}
