//! A client of exec and attach as the server's clients are: channels over a WebSocket, relayed to the session.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use oarsman_cri::{SessionStream, StreamingEndpoint};
use oarsman_streaming::channels::{
    ChannelEvent, ChannelProtocol, ChannelSocket, ERROR, RESIZE, STDERR, STDIN, STDOUT,
};
use oarsman_streaming::relay::{self, RemoteCommandRelay, RemoteCommandStreams};
use oarsman_streaming::websocket::FrameMask;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// How long nothing may be sent on a connection.
pub(super) const LONGEST_IDLE: Duration = Duration::from_secs(60);

/// The client's end of a session.
pub(super) fn opened(endpoint: &StreamingEndpoint) -> Result<SessionStream> {
    match endpoint {
        StreamingEndpoint::Session(session) => session.open().context("a session that is new"),
        StreamingEndpoint::Url(url) => bail!("a URL: {url}"),
    }
}

/// What came until the end.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) status: Value,
}

pub(super) struct StreamsClient {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
    socket: ChannelSocket,
    outputs: [Vec<u8>; 4],
    is_ready: bool,
    _relay: AbortOnDropHandle<()>,
}

impl StreamsClient {
    pub(super) fn new(endpoint: &StreamingEndpoint, tty: bool) -> Result<Self> {
        let wanted = RemoteCommandStreams { stdin: true, stdout: true, stderr: !tty, tty };
        let relay = Box::new(RemoteCommandRelay::new(ChannelProtocol::V5, wanted));
        let (stream, (client, server)) = (opened(endpoint)?, duplex(64 << 10));
        let relaying = async move { drop(relay::run(server, stream, relay, LONGEST_IDLE).await) };
        let (reader, writer) = split(client);
        let mask = FrameMask::Random(Box::new(|| [1, 2, 3, 4]));
        Ok(Self {
            reader,
            writer,
            socket: ChannelSocket::client(ChannelProtocol::V5, mask),
            outputs: Default::default(),
            is_ready: false,
            _relay: AbortOnDropHandle::new(tokio::spawn(relaying)),
        })
    }

    async fn send(&mut self, channel: u8, bytes: &[u8]) -> Result<()> {
        let mut wire = Vec::new();
        self.socket.send(channel, bytes, &mut wire);
        Ok(self.writer.write_all(&wire).await?)
    }

    pub(super) async fn input(&mut self, text: &str) -> Result<()> {
        self.send(STDIN, text.as_bytes()).await
    }

    pub(super) async fn end_input(&mut self) -> Result<()> {
        let mut wire = Vec::new();
        self.socket.close_channel(STDIN, &mut wire);
        Ok(self.writer.write_all(&wire).await?)
    }

    pub(super) async fn resize(&mut self, columns: u16, rows: u16) -> Result<()> {
        let size = json!({ "Width": columns, "Height": rows });
        self.send(RESIZE, size.to_string().as_bytes()).await
    }

    /// Sends as much as all buffers take.
    pub(super) async fn flood(&mut self) -> Result<()> {
        loop {
            let sent = timeout(Duration::from_secs(1), self.input(&"x".repeat(16 << 10))).await;
            match sent {
                Ok(sent) => sent?,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Sends a lot, and takes what comes meanwhile.
    pub(super) async fn input_while_reading(&mut self, bytes: &[u8]) -> Result<()> {
        let mut wire = Vec::new();
        for piece in bytes.chunks(16 << 10) {
            self.socket.send(STDIN, piece, &mut wire);
        }
        let mut rest = wire.as_slice();
        let mut buffer = vec![0; 32 << 10];
        while !rest.is_empty() {
            tokio::select! {
                written = self.writer.write(rest) => {
                    rest = rest.get(written?..).unwrap_or_default();
                }
                read = self.reader.read(&mut buffer) => {
                    let length = read?;
                    ensure!(length > 0, "the connection ended");
                    take(&mut self.socket, &mut self.outputs, &buffer[..length])?;
                }
            }
        }
        Ok(())
    }

    /// Whether more may come.
    async fn receive(&mut self) -> Result<bool> {
        let mut buffer = vec![0; 32 << 10];
        let length = self.reader.read(&mut buffer).await?;
        self.is_ready |= length > 0;
        take(&mut self.socket, &mut self.outputs, &buffer[..length])?;
        Ok(length > 0)
    }

    /// Until the relay has told that it is connected.
    pub(super) async fn until_ready(&mut self) -> Result<()> {
        while !self.is_ready {
            ensure!(self.receive().await?, "the connection ended");
        }
        Ok(())
    }

    pub(super) async fn until_output(&mut self, wanted: &str) -> Result<()> {
        loop {
            let said = String::from_utf8_lossy(&self.outputs[usize::from(STDOUT)]).into_owned();
            if said.contains(wanted) {
                return Ok(());
            }
            ensure!(self.receive().await?, "the connection ended after {said:?}");
        }
    }

    /// All that was written, until the connection ends.
    pub(super) async fn rest(mut self) -> Result<Ended> {
        while self.receive().await? {}
        let text = |channel: u8| String::from_utf8(self.outputs[usize::from(channel)].clone());
        let status = serde_json::from_str(&text(ERROR)?).context("a status")?;
        Ok(Ended { stdout: text(STDOUT)?, stderr: text(STDERR)?, status })
    }
}

fn take(socket: &mut ChannelSocket, outputs: &mut [Vec<u8>; 4], bytes: &[u8]) -> Result<()> {
    for event in socket.feed(bytes, &mut Vec::new())? {
        if let ChannelEvent::Data { channel, bytes } = event {
            outputs.get_mut(usize::from(channel)).context("a known channel")?.extend(bytes);
        }
    }
    Ok(())
}
