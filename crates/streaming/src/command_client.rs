//! The client of exec and attach over `v5.channel.k8s.io`: input and sizes of the terminal go there, outputs and the status come back.

#[cfg(test)]
mod tests;

use std::io;

use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::mpsc;

use crate::StreamingError;
use crate::channels::{
    ChannelEvent, ChannelProtocol, ChannelSocket, ERROR, RESIZE, STDERR, STDIN, STDOUT,
};
use crate::connect::UpgradeRequest;
use crate::websocket::{self, FrameMask};

const READ_BYTES: usize = 32 * 1024;
/// A status is a short JSON object; what is longer is cut off.
const MAX_STATUS_BYTES: usize = 64 * 1024;

/// Why it is not known how a command ended.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It could not be run, or its end was not told.
    #[error("{0}")]
    Failed(String),
    /// The protocol was broken.
    #[error(transparent)]
    Streaming(#[from] StreamingError),
    /// An output of this side takes nothing more.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
    /// The input or the connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Its columns.
    pub columns: u16,
    /// Its rows.
    pub rows: u16,
}

/// What a command reads and writes.
#[derive(Debug)]
pub struct CommandStreams<I, O, E> {
    /// The input; none for a command without one.
    pub stdin: Option<I>,
    /// The output.
    pub stdout: O,
    /// The error output.
    pub stderr: E,
    /// New sizes of the terminal.
    pub sizes: Option<mpsc::Receiver<TerminalSize>>,
}

/// A request for a WebSocket with the channels of a command.
pub fn request(target: String) -> UpgradeRequest {
    let headers = vec![
        ("sec-websocket-version", "13".to_owned()),
        ("sec-websocket-key", websocket::new_key(random())),
        ("sec-websocket-protocol", ChannelProtocol::V5.name().unwrap_or_default().to_owned()),
    ];
    UpgradeRequest { target, protocol: "websocket", headers }
}

/// Random bytes. Zeros, where the machine gives none, do no harm: masks protect proxies, and there are none on a local socket.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok();
    bytes
}

/// Talks to a command until it has ended, and returns its exit code.
///
/// # Errors
/// When it could not be run, or the connection or one of its streams fails.
pub async fn run<S, I, O, E>(
    stream: S,
    mut streams: CommandStreams<I, O, E>,
) -> Result<u8, CommandError>
where
    S: AsyncRead + AsyncWrite,
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
    E: AsyncWrite + Unpin,
{
    let (mut reader, mut writer) = split(stream);
    let mask = FrameMask::Random(Box::new(random));
    let mut socket = ChannelSocket::client(ChannelProtocol::V5, mask);
    let (mut outgoing, mut status) = (Vec::new(), Vec::new());
    let (mut received, mut typed) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    // A command that has ended takes no more input; its output and its status may still be on their way.
    let mut write_failure = None;
    loop {
        tokio::select! {
            read = reader.read(&mut received) => {
                let length = read?;
                if length == 0 {
                    return exit_code(&status).map_err(|lost| write_failure.unwrap_or(lost));
                }
                for event in socket.feed(&received[..length], &mut outgoing)? {
                    match event {
                        ChannelEvent::Data { channel: STDOUT, bytes } => {
                            write_output(&mut streams.stdout, &bytes).await?;
                        }
                        ChannelEvent::Data { channel: STDERR, bytes } => {
                            write_output(&mut streams.stderr, &bytes).await?;
                        }
                        ChannelEvent::Data { channel: ERROR, bytes } if status.len() < MAX_STATUS_BYTES => {
                            status.extend(bytes);
                        }
                        ChannelEvent::Data { .. } | ChannelEvent::Close(_) => {}
                        ChannelEvent::End => return exit_code(&status),
                    }
                }
            }
            written = writer.write(&outgoing), if !outgoing.is_empty() && write_failure.is_none() => {
                match written {
                    Ok(length) => drop(outgoing.drain(..length)),
                    Err(error) => write_failure = Some(CommandError::Io(error)),
                }
            }
            read = read_some(&mut streams.stdin, &mut typed), if outgoing.is_empty() => {
                match read? {
                    0 => {
                        streams.stdin = None;
                        socket.close_channel(STDIN, &mut outgoing);
                    }
                    length => socket.send(STDIN, &typed[..length], &mut outgoing),
                }
            }
            size = next_size(&mut streams.sizes), if outgoing.is_empty() => {
                let size = json!({ "Width": size.columns, "Height": size.rows });
                socket.send(RESIZE, size.to_string().as_bytes(), &mut outgoing);
            }
        }
    }
}

async fn write_output<O: AsyncWrite + Unpin>(
    output: &mut O,
    bytes: &[u8],
) -> Result<(), CommandError> {
    let written = async {
        output.write_all(bytes).await?;
        output.flush().await
    };
    written.await.map_err(CommandError::Output)
}

async fn read_some<I: AsyncRead + Unpin>(
    stdin: &mut Option<I>,
    buffer: &mut [u8],
) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.read(buffer).await,
        None => std::future::pending().await,
    }
}

async fn next_size(sizes: &mut Option<mpsc::Receiver<TerminalSize>>) -> TerminalSize {
    if let Some(receiver) = sizes {
        if let Some(size) = receiver.recv().await {
            return size;
        }
        *sizes = None;
    }
    std::future::pending().await
}

/// The exit code of a Status.
fn exit_code(status: &[u8]) -> Result<u8, CommandError> {
    let Ok(status) = serde_json::from_slice::<Value>(status) else {
        let said = "the connection ended before the command did".to_owned();
        return Err(CommandError::Failed(said));
    };
    if status["status"] == "Success" {
        return Ok(0);
    }
    let causes = status["details"]["causes"].as_array();
    let code = causes.into_iter().flatten().find(|cause| cause["reason"] == "ExitCode");
    let code = code.and_then(|cause| cause["message"].as_str()?.parse().ok());
    let message = status["message"].as_str().unwrap_or("it failed without a message");
    code.ok_or_else(|| CommandError::Failed(message.to_owned()))
}
