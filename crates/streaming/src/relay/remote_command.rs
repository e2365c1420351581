//! The relay of exec and attach over WebSocket channels: each channel is a stream of the runtime's SPDY connection.

use super::runtime_streams::{RuntimeStreams, StreamEvent};
use super::{Relay, RelayOutput};
use crate::StreamingError;
use crate::channels::{
    ChannelEvent, ChannelProtocol, ChannelSocket, ERROR, RESIZE, STDERR, STDIN, STDOUT,
};

/// A status of the runtime is a short JSON object; what is longer is cut off.
const MAX_STATUS_BYTES: usize = 64 * 1024;
/// What a client is told when the runtime's connection ends without a status. Without one, clients take a command for successful.
const LOST_STATUS: &str = r#"{"metadata":{},"status":"Failure","message":"the connection to the runtime ended before the command did","reason":"InternalError","code":500}"#;

/// Which streams a command has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteCommandStreams {
    /// Whether the client sends input.
    pub stdin: bool,
    /// Whether the client gets the output.
    pub stdout: bool,
    /// Whether the client gets the error output apart.
    pub stderr: bool,
    /// Whether the command has a terminal.
    pub tty: bool,
}

impl RemoteCommandStreams {
    /// The channels with the types of their streams, in the order in which they are opened.
    pub(crate) fn channels(self) -> impl Iterator<Item = (u8, &'static str)> {
        let all = [
            (true, ERROR, "error"),
            (self.stdin, STDIN, "stdin"),
            (self.stdout, STDOUT, "stdout"),
            (self.stderr, STDERR, "stderr"),
            (self.tty, RESIZE, "resize"),
        ];
        all.into_iter()
            .filter(|(is_wanted, ..)| *is_wanted)
            .map(|(_, channel, kind)| (channel, kind))
    }

    /// The channel on which the client is told that it is connected.
    fn lowest_output(self) -> u8 {
        match (self.stdout, self.stderr) {
            (true, _) => STDOUT,
            (false, true) => STDERR,
            (false, false) => ERROR,
        }
    }
}

/// Relays a command.
#[derive(Debug)]
pub struct RemoteCommandRelay {
    wanted: RemoteCommandStreams,
    socket: ChannelSocket,
    streams: RuntimeStreams,
    /// The status, where the client wants a text made of it.
    status: Vec<u8>,
    /// Whether the runtime has sent a status.
    has_status: bool,
}

impl RemoteCommandRelay {
    /// Relays between a client with that subprotocol and a runtime that was asked for these streams.
    pub fn new(protocol: ChannelProtocol, wanted: RemoteCommandStreams) -> Self {
        let (socket, streams) = (ChannelSocket::server(protocol), RuntimeStreams::default());
        Self { wanted, socket, streams, status: Vec::new(), has_status: false }
    }

    fn send_error(&mut self, bytes: &[u8], out: &mut RelayOutput) {
        self.has_status |= !bytes.is_empty();
        if self.socket.protocol().has_status() {
            self.socket.send(ERROR, bytes, &mut out.to_client);
        } else if self.status.len() + bytes.len() <= MAX_STATUS_BYTES {
            self.status.extend_from_slice(bytes);
        }
    }

    /// Old clients get the message of a failure, and nothing of a success.
    fn end_error(&mut self, out: &mut RelayOutput) {
        let status = std::mem::take(&mut self.status);
        let Ok(status) = serde_json::from_slice::<serde_json::Value>(&status) else { return };
        let message = status["message"].as_str().filter(|_| status["status"] != "Success");
        if let Some(message) = message {
            self.socket.send(ERROR, message.as_bytes(), &mut out.to_client);
        }
    }
}

impl Relay for RemoteCommandRelay {
    fn start(&mut self, out: &mut RelayOutput) {
        for (channel, kind) in self.wanted.channels() {
            let headers = vec![("streamtype".to_owned(), kind.to_owned())];
            self.streams.open(channel, headers, &mut out.to_runtime);
        }
        self.socket.send(self.wanted.lowest_output(), &[], &mut out.to_client);
    }

    fn is_accepted(&self) -> bool {
        self.streams.are_accepted()
    }

    fn client_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        for event in self.socket.feed(bytes, &mut out.to_client)? {
            match event {
                ChannelEvent::Data { channel: channel @ (STDIN | RESIZE), bytes } => {
                    self.streams.send(channel, &bytes, &mut out.to_runtime);
                }
                ChannelEvent::Close(STDIN) => self.streams.close(STDIN, &mut out.to_runtime),
                // Other channels are not the client's to write or to close.
                ChannelEvent::Data { .. } | ChannelEvent::Close(_) => {}
                ChannelEvent::End => out.is_done = true,
            }
        }
        Ok(())
    }

    fn runtime_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        for event in self.streams.feed(bytes, &mut out.to_runtime)? {
            match event {
                StreamEvent::Data(ERROR, bytes) => self.send_error(&bytes, out),
                StreamEvent::Data(channel @ (STDOUT | STDERR), bytes) => {
                    self.socket.send(channel, &bytes, &mut out.to_client);
                }
                StreamEvent::End(ERROR) => self.end_error(out),
                StreamEvent::Data(..) | StreamEvent::End(_) => {}
            }
        }
        let of_output = |channel| matches!(channel, ERROR | STDOUT | STDERR);
        out.is_done |= self.streams.are_ended(of_output);
        Ok(())
    }

    fn probe_client(&mut self, out: &mut RelayOutput) {
        self.socket.ping(&mut out.to_client);
    }

    fn finish(&mut self, out: &mut RelayOutput) {
        if !self.has_status {
            self.send_error(LOST_STATUS.as_bytes(), out);
        }
        self.end_error(out);
        self.socket.close(&mut out.to_client);
    }
}
