//! One command, or the first process of a container, and its client.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::{sleep, timeout};

use super::command_status::CommandOutcome;
use super::connection::{ClientEvent, ClientReader, ClientWriter, connection};
use super::output::ProcessOutput;
use super::{MAX_WAITING_PIECES, header};
use crate::command_client::TerminalSize;
use crate::relay::RemoteCommandStreams;

/// How long a client has to open its streams: that of other runtimes.
const LONGEST_OPENING: Duration = Duration::from_secs(30);
/// What a client may send before it has opened all of them.
const MAX_EARLY_EVENTS: usize = 64;
/// When the outputs have ended, the end of the process is mostly near.
const LONGEST_END_WITHOUT_OUTPUT: Duration = Duration::from_secs(2);

/// A process with the ends of its streams that are ours.
pub struct ServedCommand<E, R> {
    /// What it reads.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// What it writes.
    pub stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// What it writes to its error output.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Waits for its end.
    pub ended: E,
    /// Sends sizes to its terminal, one after the other.
    pub resize: R,
    /// Whether the end of the client's input is the end of the connection.
    pub ends_with_stdin: bool,
    /// What the client is told when there is no more output although the process goes on; without it, the end of the process is waited for.
    pub without_output: Option<&'static str>,
}

/// A client that has opened its streams.
pub struct CommandConnection<S> {
    reader: ClientReader<S>,
    writer: Mutex<ClientWriter<S>>,
    streams: OpenStreams,
}

/// By their types.
#[derive(Debug, Default)]
struct OpenStreams(BTreeMap<String, u32>);

impl OpenStreams {
    fn get(&self, kind: &str) -> Option<u32> {
        self.0.get(kind).copied()
    }
}

impl<S: AsyncRead + AsyncWrite> CommandConnection<S> {
    /// Waits for the streams; none when they do not come.
    pub async fn accept(stream: S, wanted: RemoteCommandStreams) -> Option<Self> {
        let (mut reader, writer) = connection(stream);
        let opening = open_streams(&mut reader, &writer, wanted);
        let streams = timeout(LONGEST_OPENING, opening).await.ok()??;
        Some(Self { reader, writer, streams })
    }

    /// Tells the client that there is no command, and why.
    pub async fn fail(self, message: String) {
        self.finish(&CommandOutcome::Failed(message)).await;
    }

    /// Moves bytes until the process has ended and its output is sent, or the client is gone.
    pub async fn serve<E, R, F>(mut self, command: ServedCommand<E, R>)
    where
        E: Future<Output = CommandOutcome>,
        R: Fn(TerminalSize) -> F,
        F: Future<Output = ()>,
    {
        let ServedCommand { stdin, stdout, stderr, ended, resize, .. } = command;
        let (ends_with_stdin, without_output) = (command.ends_with_stdin, command.without_output);
        let output = |from: Option<_>, kind| {
            from.map(|from| ProcessOutput { from, to: self.streams.get(kind) })
        };
        let outputs = [output(stdout, "stdout"), output(stderr, "stderr")];
        let without_output = without_output.filter(|_| outputs.iter().any(Option::is_some));
        let (to_stdin, pieces) = mpsc::channel(MAX_WAITING_PIECES);
        let input = ClientInput { to_stdin: Some(to_stdin), streams: &self.streams, resize };
        let outcome = {
            let reading = input.read(&mut self.reader, &self.writer);
            let stdin_ended = async {
                if !(write_stdin(stdin, pieces).await && ends_with_stdin) {
                    std::future::pending::<()>().await;
                }
            };
            let ending = end_of(outputs, &self.writer, ended, without_output);
            tokio::select! {
                outcome = ending => outcome,
                () = reading => None,
                () = stdin_ended => Some(CommandOutcome::Success),
            }
        };
        if let Some(outcome) = outcome {
            self.finish(&outcome).await;
        }
    }

    /// The status comes after all output. A client that is gone misses it.
    async fn finish(self, outcome: &CommandOutcome) {
        let mut writer = self.writer.lock().await;
        for kind in ["stdout", "stderr"] {
            if let Some(stream) = self.streams.get(kind) {
                writer.end(stream).await;
            }
        }
        if let Some(stream) = self.streams.get("error") {
            writer.data(stream, outcome.status().as_bytes()).await;
            writer.end(stream).await;
        }
    }
}

async fn open_streams<S: AsyncRead + AsyncWrite>(
    reader: &mut ClientReader<S>,
    writer: &Mutex<ClientWriter<S>>,
    wanted: RemoteCommandStreams,
) -> Option<OpenStreams> {
    let (mut streams, mut early) = (OpenStreams::default(), VecDeque::new());
    while streams.0.len() < wanted.channels().count() {
        match reader.next(writer).await? {
            ClientEvent::Opened { stream, headers } => {
                streams.0.insert(header(&headers, "streamtype").to_owned(), stream);
            }
            event => early.push_back(event),
        }
        if early.len() > MAX_EARLY_EVENTS {
            return None;
        }
    }
    reader.give_back(early);
    Some(streams)
}

/// What the client sends.
struct ClientInput<'a, R> {
    to_stdin: Option<mpsc::Sender<Vec<u8>>>,
    streams: &'a OpenStreams,
    resize: R,
}

impl<R, F> ClientInput<'_, R>
where
    R: Fn(TerminalSize) -> F,
    F: Future<Output = ()>,
{
    /// Ends when the client is gone.
    async fn read<S: AsyncRead + AsyncWrite>(
        mut self,
        reader: &mut ClientReader<S>,
        writer: &Mutex<ClientWriter<S>>,
    ) {
        let (stdin, resize) = (self.streams.get("stdin"), self.streams.get("resize"));
        while let Some(event) = reader.next(writer).await {
            match event {
                ClientEvent::Data { stream, bytes } if Some(stream) == stdin => {
                    self.write(bytes).await;
                }
                ClientEvent::Data { stream, bytes } if Some(stream) == resize => {
                    if let Some(size) = terminal_size(&bytes) {
                        (self.resize)(size).await;
                    }
                }
                ClientEvent::Ended { stream } if Some(stream) == stdin => self.to_stdin = None,
                ClientEvent::Opened { .. }
                | ClientEvent::Data { .. }
                | ClientEvent::Ended { .. } => {}
            }
        }
    }

    /// Waits while the process is behind. What comes after it has closed its input is dropped.
    async fn write(&mut self, bytes: Vec<u8>) {
        if let Some(to_stdin) = &self.to_stdin
            && to_stdin.send(bytes).await.is_err()
        {
            self.to_stdin = None;
        }
    }
}

/// What a client sends when its window has changed.
fn terminal_size(bytes: &[u8]) -> Option<TerminalSize> {
    let size: Value = serde_json::from_slice(bytes).ok()?;
    let number = |name: &str| u16::try_from(size[name].as_u64()?).ok();
    Some(TerminalSize { columns: number("Width")?, rows: number("Height")? })
}

/// Writes until the client has sent all, and otherwise gives false: the process reads no more, or never did.
async fn write_stdin(
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    mut pieces: mpsc::Receiver<Vec<u8>>,
) -> bool {
    let Some(mut stdin) = stdin else { return false };
    while let Some(bytes) = pieces.recv().await {
        if stdin.write_all(&bytes).await.is_err() {
            return false;
        }
    }
    // Its end is what the process waits for.
    stdin.shutdown().await.is_ok()
}

/// How the process ended, once its output is sent; none when the client is gone.
async fn end_of<S: AsyncWrite>(
    outputs: [Option<ProcessOutput>; 2],
    writer: &Mutex<ClientWriter<S>>,
    ended: impl Future<Output = CommandOutcome>,
    without_output: Option<&'static str>,
) -> Option<CommandOutcome> {
    let has_ended = watch::Sender::new(false);
    let copy = |output: Option<ProcessOutput>| {
        let ended = has_ended.subscribe();
        async {
            match output {
                Some(output) => output.copy(writer, ended).await,
                None => Some(()),
            }
        }
    };
    let [stdout, stderr] = outputs.map(copy);
    let mut copying = std::pin::pin!(async { tokio::join!(stdout, stderr) });
    let mut ended = std::pin::pin!(ended);
    tokio::select! {
        outcome = &mut ended => {
            has_ended.send_replace(true);
            let (stdout, stderr) = copying.await;
            stdout.and(stderr).map(|()| outcome)
        }
        (stdout, stderr) = &mut copying => {
            stdout.and(stderr)?;
            let Some(without_output) = without_output else { return Some(ended.await) };
            tokio::select! {
                outcome = &mut ended => Some(outcome),
                () = sleep(LONGEST_END_WITHOUT_OUTPUT) => {
                    Some(CommandOutcome::Failed(without_output.to_owned()))
                }
            }
        }
    }
}
