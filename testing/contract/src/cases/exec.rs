//! Running a command in a container, at once or as a conversation.

use anyhow::Result;
use oarsman_cri::Streaming;
use oarsman_cri_types::v1::{
    AttachRequest, ExecRequest, ExecSyncRequest, ExecSyncResponse, PortForwardRequest,
};

use super::cases;
use crate::{Case, Stage};

pub(super) fn all() -> Vec<Case> {
    cases![
        a_command_gives_its_output_apart_and_its_exit_code,
        a_command_that_takes_too_long_times_out_and_is_killed,
        a_command_that_does_not_exist_fails,
        a_command_in_a_container_that_ended_fails,
        a_conversation_is_offered_under_an_address,
    ]
}

async fn exec(
    stage: &Stage,
    id: &str,
    timeout: i64,
    cmd: &[&str],
) -> oarsman_cri::Result<ExecSyncResponse> {
    let cmd = cmd.iter().map(|&word| word.to_owned()).collect();
    let request = ExecSyncRequest { container_id: id.to_owned(), cmd, timeout };
    stage.runtime().exec_sync(request).await
}

async fn a_command_gives_its_output_apart_and_its_exit_code(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["forever"]).await?;
    let answer = exec(stage, &id, 20, &["/actor", "out:good", "err:bad", "exit:3"]).await?;
    assert_eq!(answer.exit_code, 3);
    assert_eq!(String::from_utf8(answer.stdout)?, "good\n");
    assert_eq!(String::from_utf8(answer.stderr)?, "bad\n");
    Ok(())
}

async fn a_command_that_takes_too_long_times_out_and_is_killed(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["forever"]).await?;
    let late = exec(stage, &id, 1, &["/actor", "on-term:ignore", "forever"]).await;
    assert!(late.as_ref().is_err_and(oarsman_cri::CriError::is_timeout), "{late:?}");
    assert_eq!(exec(stage, &id, 20, &["/actor", "exit:0"]).await?.exit_code, 0);
    Ok(())
}

async fn a_command_that_does_not_exist_fails(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["forever"]).await?;
    assert!(exec(stage, &id, 20, &["/no/such/program"]).await.is_err());
    Ok(())
}

async fn a_command_in_a_container_that_ended_fails(stage: &Stage) -> Result<()> {
    let (_, id) = stage.run(&["exit:0"]).await?;
    stage.until_exited(&id).await?;
    assert!(exec(stage, &id, 20, &["/actor"]).await.is_err());
    Ok(())
}

async fn a_conversation_is_offered_under_an_address(stage: &Stage) -> Result<()> {
    let (pod, id) = stage.run(&["forever"]).await?;
    let runtime = stage.runtime();
    let exec = ExecRequest {
        container_id: id.clone(),
        cmd: vec!["/actor".to_owned()],
        stdout: true,
        ..ExecRequest::default()
    };
    let attach = AttachRequest { container_id: id, stdout: true, ..AttachRequest::default() };
    let forward = PortForwardRequest { pod_sandbox_id: pod.id, ..PortForwardRequest::default() };
    for offer in [
        runtime.exec(exec).await?,
        runtime.attach(attach).await?,
        runtime.port_forward(forward).await?,
    ] {
        assert!(matches!(&offer, Streaming::Url(url) if url.starts_with("http")), "{offer:?}");
    }
    Ok(())
}
