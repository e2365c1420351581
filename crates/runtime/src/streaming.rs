//! exec, attach and port-forward in this process: the runtime's end of a SPDY connection, on which a relay of `oarsman-streaming` is the client.

mod command;
mod port_forward;
mod spdy_server;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use oarsman_cri::{StreamingEndpoint, StreamingSession};
use oarsman_cri_types::v1::{AttachRequest, ExecRequest, PortForwardRequest};
use oarsman_shim::client::{AttachStreams, ExecTerminal, ShimClient};
use oarsman_shim::protocol::ExitReport;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::inner::RuntimeInner;
use crate::records::SandboxPhase;
use command::{CommandEnds, CommandSession, ResizeTarget};
use spdy_server::SpdyServer;

/// How long a client has to open its streams.
const OPEN_DEADLINE: Duration = Duration::from_secs(30);

/// Which streams a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WantedStreams {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl RuntimeInner {
    pub(crate) async fn exec(self: Arc<Self>, request: ExecRequest) -> Outcome<StreamingEndpoint> {
        let ExecRequest { container_id: id, cmd, tty, stdin, stdout, stderr } = request;
        let record = self.running(&id, "commands need one that is")?;
        let process = self.exec_process(&id, cmd, tty).await?;
        let shim = self.shim(&record.sandbox);
        let wanted = WantedStreams { stdin, stdout, stderr: stderr && !tty, tty };
        Ok(session(move |server| async move {
            let Some(session) = CommandSession::open(server, wanted).await else { return };
            let begun = async {
                let (ends, given) = if tty { Default::default() } else { pipes(wanted)? };
                let mut exec = shim.exec(&id, process, given, None).await?;
                let terminal = exec.terminal.take();
                let ends = match &terminal {
                    Some(terminal) => terminal_ends(terminal, wanted)?,
                    None => ends,
                };
                Ok::<_, EmbeddedRuntimeError>((exec, ends, terminal))
            };
            match begun.await {
                Ok((exec, ends, terminal)) => {
                    let ended = async { exec.wait().await.map(|exit| status(&exit)).ok() };
                    session.run(ends, ResizeTarget::Exec(terminal), ended).await;
                }
                Err(error) => session.fail(&error.to_string()).await,
            }
        }))
    }

    pub(crate) fn attach(&self, request: AttachRequest) -> Outcome<StreamingEndpoint> {
        let AttachRequest { container_id: id, stdin, tty, stdout, stderr } = request;
        let record = self.running(&id, "only one that runs can be attached to")?;
        let shim = self.shim(&record.sandbox);
        let wanted = WantedStreams { stdin, stdout, stderr: stderr && !tty, tty };
        Ok(session(move |server| async move {
            let Some(session) = CommandSession::open(server, wanted).await else { return };
            match attached(&shim, &id, wanted).await {
                Ok(ends) => {
                    let target = ResizeTarget::Container(shim.clone(), id.clone());
                    let ended = async { shim.wait(&id).await.ok().map(|_| success()) };
                    session.run(ends, target, ended).await;
                }
                Err(error) => session.fail(&error.to_string()).await,
            }
        }))
    }

    pub(crate) fn port_forward(
        self: Arc<Self>,
        request: PortForwardRequest,
    ) -> Outcome<StreamingEndpoint> {
        let id = request.pod_sandbox_id;
        let (record, _) = self.sandbox(&id)?;
        if record.phase != SandboxPhase::Ready {
            let (kind, state, why) = ("sandbox", "not ready", "its ports need one that is");
            return Err(EmbeddedRuntimeError::State { kind, id, state, why });
        }
        let network = self.joinable(&record)?.network;
        Ok(session(move |server| port_forward::serve(server, network)))
    }
}

/// The task ends with the connection, whose other end is the caller's.
fn session<F>(serve: impl FnOnce(SpdyServer) -> F + Send + 'static) -> StreamingEndpoint
where
    F: Future<Output = ()> + Send + 'static,
{
    let (session, stream) = StreamingSession::new();
    tokio::spawn(serve(SpdyServer::new(stream)));
    StreamingEndpoint::Session(session)
}

async fn attached(shim: &ShimClient, id: &str, wanted: WantedStreams) -> Outcome<CommandEnds> {
    let (ends, given) = pipes(wanted)?;
    shim.attach(id, &given).await?;
    Ok(ends)
}

/// Pipes for the wanted streams: our ends, and those that the shim gets.
fn pipes(wanted: WantedStreams) -> Outcome<(CommandEnds, AttachStreams)> {
    let (mut ends, mut given) = (CommandEnds::default(), AttachStreams::default());
    let make = || pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(pipe_error);
    if wanted.stdin {
        let (reader, writer) = make()?;
        ends.stdin = Some(pipe::Sender::from_owned_fd(writer).map_err(pipe_error)?);
        given.stdin = Some(reader);
    }
    for (is_wanted, end, shims) in [
        (wanted.stdout, &mut ends.stdout, &mut given.stdout),
        (wanted.stderr, &mut ends.stderr, &mut given.stderr),
    ] {
        if is_wanted {
            let (reader, writer) = make()?;
            *end = Some(pipe::Receiver::from_owned_fd(reader).map_err(pipe_error)?);
            *shims = Some(writer);
        }
    }
    Ok((ends, given))
}

/// A terminal is read and written like a pair of pipes.
fn terminal_ends(terminal: &ExecTerminal, wanted: WantedStreams) -> Outcome<CommandEnds> {
    let copy = || -> io::Result<OwnedFd> {
        let copy = terminal.descriptor().try_clone_to_owned()?;
        fcntl_setfl(copy.as_fd(), fcntl_getfl(copy.as_fd())? | OFlags::NONBLOCK)?;
        Ok(copy)
    };
    let mut ends = CommandEnds::default();
    if wanted.stdin {
        let end = copy().and_then(pipe::Sender::from_owned_fd_unchecked);
        ends.stdin = Some(end.map_err(pipe_error)?);
    }
    // Read also when nobody wants it: the process would wait otherwise.
    let end = copy().and_then(pipe::Receiver::from_owned_fd_unchecked);
    ends.stdout = Some(end.map_err(pipe_error)?);
    Ok(ends)
}

fn pipe_error(error: io::Error) -> EmbeddedRuntimeError {
    EmbeddedRuntimeError::Invalid(format!("cannot make a pipe: {error}"))
}

/// The Status that clients of `v4.channel.k8s.io` read.
fn status(exit: &ExitReport) -> String {
    let code = exit.exit_code;
    if code == 0 {
        return success();
    }
    let message = format!("command terminated with exit code {code}");
    let causes = [serde_json::json!({ "reason": "ExitCode", "message": code.to_string() })];
    serde_json::json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": message,
        "details": { "causes": causes },
    })
    .to_string()
}

fn success() -> String {
    serde_json::json!({ "metadata": {}, "status": "Success" }).to_string()
}

fn failure(message: &str) -> String {
    serde_json::json!({
        "metadata": {}, "status": "Failure", "reason": "InternalError", "message": message, "code": 500,
    })
    .to_string()
}
