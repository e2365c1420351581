//! Cases on commands in a container: run to their end, or streamed.

use anyhow::Result;
use oarsman_cri::StreamingEndpoint;
use oarsman_cri_types::v1::{
    AttachRequest, ExecRequest, ExecSyncRequest, ExecSyncResponse, PortForwardRequest,
};

use super::cases;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        a_command_gives_its_output_apart_and_its_exit_code,
        a_command_that_takes_too_long_times_out_and_is_killed,
        a_command_that_does_not_exist_fails,
        a_command_in_a_container_that_ended_fails,
        exec_attach_and_port_forward_give_something_to_connect_to,
    ]
}

async fn exec(
    cx: &CaseContext,
    id: &str,
    timeout: i64,
    cmd: &[&str],
) -> oarsman_cri::Result<ExecSyncResponse> {
    let cmd = cmd.iter().map(|&word| word.to_owned()).collect();
    let request = ExecSyncRequest { container_id: id.to_owned(), cmd, timeout };
    cx.runtime().exec_sync(request).await
}

async fn a_command_gives_its_output_apart_and_its_exit_code(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["forever"]).await?;
    let answer = exec(cx, &id, 20, &["/script", "out:good", "err:bad", "exit:3"]).await?;
    assert_eq!(answer.exit_code, 3);
    assert_eq!(String::from_utf8(answer.stdout)?, "good\n");
    assert_eq!(String::from_utf8(answer.stderr)?, "bad\n");
    Ok(())
}

async fn a_command_that_takes_too_long_times_out_and_is_killed(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["forever"]).await?;
    let late = exec(cx, &id, 1, &["/script", "on-term:ignore", "forever"]).await;
    assert!(late.as_ref().is_err_and(oarsman_cri::CriError::is_timeout), "{late:?}");
    assert_eq!(exec(cx, &id, 20, &["/script", "exit:0"]).await?.exit_code, 0);
    Ok(())
}

async fn a_command_that_does_not_exist_fails(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["forever"]).await?;
    assert!(exec(cx, &id, 20, &["/no/such/program"]).await.is_err());
    Ok(())
}

async fn a_command_in_a_container_that_ended_fails(cx: &CaseContext) -> Result<()> {
    let (_, id) = cx.run(&["exit:0"]).await?;
    cx.until_exited(&id).await?;
    assert!(exec(cx, &id, 20, &["/script"]).await.is_err());
    Ok(())
}

async fn exec_attach_and_port_forward_give_something_to_connect_to(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["forever"]).await?;
    let runtime = cx.runtime();
    let exec = ExecRequest {
        container_id: id.clone(),
        cmd: vec!["/script".to_owned()],
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
        match offer {
            StreamingEndpoint::Url(url) => assert!(url.starts_with("http"), "{url}"),
            StreamingEndpoint::Session(session) => {
                assert!(session.open().is_some() && session.open().is_none());
            }
        }
    }
    Ok(())
}
