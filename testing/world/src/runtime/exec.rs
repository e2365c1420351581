//! Commands in containers, and addresses to talk to them.

use std::sync::Mutex;
use std::time::Duration;

use oarsman_cri::{Code, CriError, Result, Streaming};
use oarsman_cri_types::v1::{ExecSyncRequest, ExecSyncResponse};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::FakeRuntime;
use super::play::{Actor, Ending, Output};
use super::state::State;
use crate::lock;

const CALL: &str = "ExecSync";
/// Exit code of a killed command.
const KILLED: i32 = 128 + 9;
/// How much of each output is kept.
const LONGEST_OUTPUT: usize = 16 << 20;

/// A command about to be run.
struct Command {
    actor: Actor,
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
        let Command { actor, mut ended, limit } = self.prepare(request)?;
        let (_nobody, signals) = mpsc::channel(1);
        let exit_code = tokio::select! {
            biased;
            ending = actor.run(signals) => exit_code(ending),
            _ = ended.wait_for(|ended| *ended) => KILLED,
            () = sleep(limit.unwrap_or_default()), if limit.is_some() => {
                let message = format!("the command did not end within {limit:?}");
                return Err(CriError::new(CALL, Code::DeadlineExceeded, message).on(id));
            }
        };
        Ok(answer(&actor, exit_code))
    }

    fn prepare(&self, request: ExecSyncRequest) -> Result<Command> {
        let ExecSyncRequest { container_id: id, cmd, timeout } = request;
        let state = self.serve(CALL)?;
        let container = state.running(CALL, &id)?;
        let program = container.program.with_command(cmd);
        if !program.exists() {
            let message = format!("exec {:?}: no such file", program.name());
            return Err(CriError::new(CALL, Code::Unknown, message).on(id));
        }
        let ended = container.ended();
        let limit = u64::try_from(timeout).ok().filter(|seconds| *seconds > 0);
        let actor = Actor::new(self.clone(), id, program, Output::Kept(Mutex::default()));
        Ok(Command { actor, ended, limit: limit.map(Duration::from_secs) })
    }
}

fn exit_code(ending: Ending) -> i32 {
    match ending {
        Ending::Code(code) => i32::from(code),
        Ending::OutOfMemory => KILLED,
    }
}

fn answer(actor: &Actor, exit_code: i32) -> ExecSyncResponse {
    let (mut stdout, mut stderr) = match &actor.output {
        Output::Kept(kept) => std::mem::take(&mut *lock(kept)),
        Output::Log => Default::default(),
    };
    stdout.truncate(LONGEST_OUTPUT);
    stderr.truncate(LONGEST_OUTPUT);
    ExecSyncResponse { stdout, stderr, exit_code }
}

impl State {
    /// An address that nobody serves, good for one connection as all of them are.
    pub(super) fn streaming_url(&mut self, purpose: &str) -> Streaming {
        Streaming::Url(format!("http://127.0.0.1:1/{purpose}/{}", self.next_number()))
    }
}
