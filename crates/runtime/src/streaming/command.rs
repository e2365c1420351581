//! One command or attached container, and its client.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_shim::client::{ExecTerminal, ShimClient};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::spdy_server::{ClientEvent, ClientWriter, SpdyServer};
use super::{OPEN_DEADLINE, WantedStreams, failure};

/// How long output is read after the end, in case something that was left behind holds the pipes.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 32 << 10;

/// Our ends of the streams.
#[derive(Debug, Default)]
pub(super) struct CommandEnds {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: Option<pipe::Receiver>,
    pub(super) stderr: Option<pipe::Receiver>,
}

/// What a client sends when its window has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TerminalSize {
    width: u16,
    height: u16,
}

/// The terminal whose size a client changes.
#[derive(Debug)]
pub(super) enum ResizeTarget {
    /// That of a command, if it has one.
    Exec(Option<ExecTerminal>),
    /// That of a container.
    Container(ShimClient, String),
}

impl ResizeTarget {
    /// A terminal that is gone, or was never there, has no size.
    async fn apply(&self, TerminalSize { width, height }: TerminalSize) {
        match self {
            Self::Exec(Some(terminal)) => terminal.resize(width, height).unwrap_or_default(),
            Self::Exec(None) => {}
            Self::Container(shim, id) => drop(shim.resize(id, width, height).await),
        }
    }
}

/// A client that has opened its streams.
pub(super) struct CommandSession {
    server: SpdyServer,
    /// By their types.
    streams: BTreeMap<String, u32>,
}

impl CommandSession {
    /// Waits for the streams; none when they do not come.
    pub(super) async fn open(mut server: SpdyServer, wanted: WantedStreams) -> Option<Self> {
        let count = [true, wanted.stdin, wanted.stdout, wanted.stderr, wanted.tty];
        let count = count.into_iter().filter(|is_wanted| *is_wanted).count();
        let mut streams = BTreeMap::new();
        let opened = async {
            while streams.len() < count {
                let event = server.reader.next(&server.writer).await?;
                if let ClientEvent::Opened { stream, headers } = event {
                    let kind = headers.into_iter().find(|(name, _)| name == "streamtype");
                    streams.insert(kind.map(|(_, kind)| kind).unwrap_or_default(), stream);
                }
            }
            Some(())
        };
        timeout(OPEN_DEADLINE, opened).await.ok()??;
        Some(Self { server, streams })
    }

    /// Tells that there is no command.
    pub(super) async fn fail(self, message: &str) {
        let Self { server, streams } = self;
        finish(&server.writer, &streams, Some(failure(message))).await;
    }

    /// Moves bytes until the command has ended or the client is gone.
    pub(super) async fn run(
        self,
        ends: CommandEnds,
        resize: ResizeTarget,
        ended: impl Future<Output = Option<String>>,
    ) {
        let Self { server: SpdyServer { mut reader, writer }, streams } = self;
        let CommandEnds { mut stdin, stdout, stderr } = ends;
        let of = |kind: &str| streams.get(kind).copied();
        let input = async {
            while let Some(event) = reader.next(&writer).await {
                match event {
                    ClientEvent::Data { stream, bytes } if Some(stream) == of("stdin") => {
                        let written = match &mut stdin {
                            Some(stdin) => stdin.write_all(&bytes).await.is_ok(),
                            None => true,
                        };
                        if !written {
                            stdin = None;
                        }
                    }
                    ClientEvent::Data { stream, bytes } if Some(stream) == of("resize") => {
                        if let Ok(size) = serde_json::from_slice(&bytes) {
                            resize.apply(size).await;
                        }
                    }
                    ClientEvent::Ended { stream } if Some(stream) == of("stdin") => stdin = None,
                    ClientEvent::Opened { .. }
                    | ClientEvent::Data { .. }
                    | ClientEvent::Ended { .. } => {}
                }
            }
        };
        let output = async {
            tokio::join!(copy(stdout, of("stdout"), &writer), copy(stderr, of("stderr"), &writer))
        };
        let whole = async {
            let (mut output, mut ended) = (std::pin::pin!(output), std::pin::pin!(ended));
            let status = tokio::select! {
                status = &mut ended => {
                    timeout(DRAIN_TIMEOUT, output).await.ok();
                    status
                }
                _ = &mut output => ended.await,
            };
            let status = status.unwrap_or_else(|| failure("the container's shim is gone"));
            finish(&writer, &streams, Some(status)).await;
        };
        tokio::select! {
            () = input => {}
            () = whole => {}
        }
    }
}

/// Moves output to its stream, or nowhere, until its end.
async fn copy(from: Option<pipe::Receiver>, to: Option<u32>, writer: &Mutex<ClientWriter>) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; READ_BYTES];
    // A terminal ends with an error.
    while let Some(count) = from.read(&mut buffer).await.ok().filter(|count| *count > 0) {
        let bytes = buffer.get(..count).unwrap_or_default();
        if let Some(stream) = to
            && writer.lock().await.data(stream, bytes).await.is_none()
        {
            return;
        }
    }
}

async fn finish(
    writer: &Mutex<ClientWriter>,
    streams: &BTreeMap<String, u32>,
    status: Option<String>,
) {
    let mut writer = writer.lock().await;
    for (kind, stream) in streams.iter().filter(|(kind, _)| *kind != "error") {
        if kind != "stdin" && kind != "resize" {
            writer.end(*stream).await;
        }
    }
    if let (Some(error), Some(status)) = (streams.get("error"), status) {
        writer.data(*error, status.as_bytes()).await;
        writer.end(*error).await;
    }
    for kind in ["stdin", "resize"] {
        if let Some(stream) = streams.get(kind) {
            writer.end(*stream).await;
        }
    }
}
