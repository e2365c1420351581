//! Commands in containers, and URLs of streaming calls.

use std::sync::Mutex;
use std::time::Duration;

use oarsman_cri::{CriError, ErrorCode, Result, StreamingEndpoint};
use oarsman_cri_types::v1::{ExecSyncRequest, ExecSyncResponse};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::FakeRuntime;
use super::execution::{ProgramEnd, ProgramOutput, ScriptRunner};
use super::state::FakeRuntimeState;
use crate::lock;

const CALL: &str = "ExecSync";
/// Exit code of a killed command.
const KILLED: i32 = 128 + 9;
/// How much of each output is kept.
const LONGEST_OUTPUT: usize = 16 << 20;

/// A command about to be run.
struct ExecCommand {
    runner: ScriptRunner,
    /// Becomes true when its container ends.
    ended: watch::Receiver<bool>,
    /// None for a command that may run for ever.
    limit: Option<Duration>,
}

impl FakeRuntime {
    /// Runs a command in a container. It ends with the container, and is killed by its timeout or
    /// when this is dropped.
    pub(super) async fn run_command(&self, request: ExecSyncRequest) -> Result<ExecSyncResponse> {
        let id = request.container_id.clone();
        let ExecCommand { runner, mut ended, limit } = self.prepare(request)?;
        let (_nobody, signals) = mpsc::channel(1);
        let exit_code = tokio::select! {
            biased;
            ending = runner.run(signals) => exit_code(ending),
            _ = ended.wait_for(|ended| *ended) => KILLED,
            () = sleep(limit.unwrap_or_default()), if limit.is_some() => {
                let message = format!("the command did not end within {limit:?}");
                return Err(CriError::new(CALL, ErrorCode::DeadlineExceeded, message).on(id));
            }
        };
        Ok(answer(&runner, exit_code))
    }

    fn prepare(&self, request: ExecSyncRequest) -> Result<ExecCommand> {
        let ExecSyncRequest { container_id: id, cmd, timeout } = request;
        let state = self.serve(CALL)?;
        let container = state.running(CALL, &id)?;
        let program = container.program.with_command(cmd);
        if !program.exists() {
            let message = format!("exec {:?}: no such file", program.name());
            return Err(CriError::new(CALL, ErrorCode::Unknown, message).on(id));
        }
        let ended = container.ended();
        let limit = u64::try_from(timeout).ok().filter(|seconds| *seconds > 0);
        let runner =
            ScriptRunner::new(self.clone(), id, program, ProgramOutput::Kept(Mutex::default()));
        Ok(ExecCommand { runner, ended, limit: limit.map(Duration::from_secs) })
    }
}

fn exit_code(ending: ProgramEnd) -> i32 {
    match ending {
        ProgramEnd::Code(code) => i32::from(code),
        ProgramEnd::OutOfMemory => KILLED,
    }
}

fn answer(runner: &ScriptRunner, exit_code: i32) -> ExecSyncResponse {
    let (mut stdout, mut stderr) = match &runner.output {
        ProgramOutput::Kept(kept) => std::mem::take(&mut *lock(kept)),
        ProgramOutput::Log => Default::default(),
    };
    stdout.truncate(LONGEST_OUTPUT);
    stderr.truncate(LONGEST_OUTPUT);
    ExecSyncResponse { stdout, stderr, exit_code }
}

impl FakeRuntimeState {
    /// A URL without a server, good for one connection as those of real runtimes.
    pub(super) fn streaming_url(&mut self, purpose: &str) -> StreamingEndpoint {
        StreamingEndpoint::Url(format!("http://127.0.0.1:1/{purpose}/{}", self.next_number()))
    }
}
