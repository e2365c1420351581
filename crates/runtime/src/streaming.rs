//! exec, attach and port-forward in this process: sessions on which a process or the ports of a pod answer.

mod pod_ports;
mod process_streams;

use std::sync::Arc;

use oarsman_cri::{SessionPurpose, StreamingEndpoint, StreamingSession};
use oarsman_cri_types::v1::{AttachRequest, ExecRequest, PortForwardRequest};
use oarsman_shim::client::{AttachStreams, ExecLifetime, ExecTerminal, ShimClient, ShimError};
use oarsman_streaming::command_client::TerminalSize;
use oarsman_streaming::relay::RemoteCommandStreams;
use oarsman_streaming::runtime_end::{
    CommandConnection, CommandOutcome, ServedCommand, serve_ports,
};
use oci_spec::runtime::Process;
use tokio::io::DuplexStream;

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::inner::RuntimeInner;
use crate::records::SandboxPhase;
use process_streams::{ProcessEnds, pipes, terminal_ends};

/// An attached client that reads too slowly is detached by the shim, so that the container's log goes on.
const DETACHED: &str =
    "the container goes on, but its output has ended, or this client was too far behind";

impl RuntimeInner {
    pub(crate) async fn exec(self: Arc<Self>, request: ExecRequest) -> Outcome<StreamingEndpoint> {
        let ExecRequest { container_id: id, cmd, tty, stdin, stdout, stderr } = request;
        let wanted = checked(RemoteCommandStreams { stdin, stdout, stderr, tty })?;
        let record = self.running(&id, "commands need one that is")?;
        let process = self.exec_process(&id, cmd, tty).await?;
        let shim = self.shim(&record.sandbox);
        Ok(command_session(wanted, move |stream| run_command(stream, wanted, shim, id, process)))
    }

    pub(crate) fn attach(&self, request: AttachRequest) -> Outcome<StreamingEndpoint> {
        let AttachRequest { container_id: id, stdin, tty, stdout, stderr } = request;
        let wanted = checked(RemoteCommandStreams { stdin, stdout, stderr, tty })?;
        let record = self.running(&id, "only one that runs can be attached to")?;
        // As with other runtimes: a client whose input has ended stays only for the sake of a container that ends with that input.
        let ends_with_stdin = stdin && (tty || !record.stdin_once);
        let shim = self.shim(&record.sandbox);
        Ok(command_session(wanted, move |stream| {
            attach_client(stream, wanted, shim, id, ends_with_stdin)
        }))
    }

    pub(crate) fn port_forward(
        self: &Arc<Self>,
        request: PortForwardRequest,
    ) -> Outcome<StreamingEndpoint> {
        let id = request.pod_sandbox_id;
        let (record, _) = self.sandbox(&id)?;
        if record.phase != SandboxPhase::Ready {
            let (kind, state, why) = ("sandbox", "not ready", "its ports need one that is");
            return Err(EmbeddedRuntimeError::State { kind, id, state, why });
        }
        let port = |port: &i32| {
            u16::try_from(*port)
                .map_err(|_| EmbeddedRuntimeError::Invalid(format!("there is no port {port}")))
        };
        let ports = request.port.iter().map(port).collect::<Outcome<_>>()?;
        let own_network = record.own().network;
        // A session that was not begun keeps nothing.
        let inner = Arc::downgrade(self);
        let serve = move |stream| {
            serve_ports(stream, move |port| {
                pod_ports::connect(inner.clone(), id.clone(), own_network, port)
            })
        };
        let purpose = SessionPurpose::PortForward { ports };
        Ok(StreamingEndpoint::Session(StreamingSession::new(purpose, serve)))
    }
}

/// The rules of other runtimes.
fn checked(wanted: RemoteCommandStreams) -> Outcome<RemoteCommandStreams> {
    let RemoteCommandStreams { stdin, stdout, stderr, tty } = wanted;
    let invalid = |what: &str| Err(EmbeddedRuntimeError::Invalid(what.to_owned()));
    if tty && stderr {
        return invalid("tty and stderr cannot both be true");
    }
    if !(stdin || stdout || stderr) {
        return invalid("one of stdin, stdout, or stderr must be set");
    }
    Ok(wanted)
}

fn command_session<F>(
    wanted: RemoteCommandStreams,
    serve: impl FnOnce(DuplexStream) -> F + Send + 'static,
) -> StreamingEndpoint
where
    F: Future<Output = ()> + Send + 'static,
{
    let RemoteCommandStreams { stdin, stdout, stderr, tty } = wanted;
    let purpose = SessionPurpose::Command { stdin, stdout, stderr, tty };
    StreamingEndpoint::Session(StreamingSession::new(purpose, serve))
}

/// Runs a command for a client. It is killed when this is dropped, as its connection to the shim ends.
async fn run_command(
    stream: DuplexStream,
    wanted: RemoteCommandStreams,
    shim: ShimClient,
    id: String,
    process: Process,
) {
    let Some(connection) = CommandConnection::accept(stream, wanted).await else { return };
    let begun = async {
        let (ends, given) = if wanted.tty {
            (ProcessEnds::default(), AttachStreams::default())
        } else {
            pipes(wanted)?
        };
        let mut exec = shim.exec(&id, process, given, ExecLifetime::Connection).await?;
        let terminal = exec.terminal.take();
        let ends = match &terminal {
            Some(terminal) => terminal_ends(terminal, wanted)?,
            None => ends,
        };
        Ok::<_, EmbeddedRuntimeError>((exec, ends, terminal))
    };
    let (exec, ends, terminal) = match begun.await {
        Ok(begun) => begun,
        Err(error) => {
            let message = format!(
                "error executing command in container: failed to exec in container: {error}"
            );
            return connection.fail(message).await;
        }
    };
    let ended = async {
        match exec.wait().await {
            Ok(exit) => CommandOutcome::of_exit(exit.exit_code),
            Err(error) => lost(&error),
        }
    };
    let resize = async |size| resize(terminal.as_ref(), size);
    connection
        .serve(ServedCommand {
            stdin: ends.stdin,
            stdout: ends.stdout,
            stderr: ends.stderr,
            ended,
            resize,
            ends_with_stdin: false,
            without_output: None,
        })
        .await;
}

/// A terminal that is gone has no size.
fn resize(terminal: Option<&ExecTerminal>, size: TerminalSize) {
    if let Some(terminal) = terminal {
        terminal.resize(size.columns, size.rows).unwrap_or_default();
    }
}

/// Joins a client to the streams of a container's first process.
async fn attach_client(
    stream: DuplexStream,
    wanted: RemoteCommandStreams,
    shim: ShimClient,
    id: String,
    ends_with_stdin: bool,
) {
    let Some(connection) = CommandConnection::accept(stream, wanted).await else { return };
    let attached = async {
        let (ends, given) = pipes(wanted)?;
        shim.attach(&id, &given).await?;
        Ok::<_, EmbeddedRuntimeError>(ends)
    };
    let ends = match attached.await {
        Ok(ends) => ends,
        Err(error) => {
            let message = format!("error attaching to container: {error}");
            return connection.fail(message).await;
        }
    };
    let ended = async {
        match shim.wait(&id).await {
            Ok(_) => CommandOutcome::Success,
            Err(error) => lost(&error),
        }
    };
    let resize = |size: TerminalSize| {
        let (shim, id) = (&shim, &id);
        // A container without a terminal, or one that has ended, has no size.
        async move { shim.resize(id, size.columns, size.rows).await.unwrap_or_default() }
    };
    connection
        .serve(ServedCommand {
            stdin: ends.stdin,
            stdout: ends.stdout,
            stderr: ends.stderr,
            ended,
            resize,
            ends_with_stdin,
            without_output: Some(DETACHED),
        })
        .await;
}

fn lost(error: &ShimError) -> CommandOutcome {
    CommandOutcome::Failed(format!("how the process ended is not known: {error}"))
}
