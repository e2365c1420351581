//! The subprotocols of Kubernetes over WebSocket: each message begins with the number of a channel.

#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::StreamingError;
use crate::websocket::{
    FrameMask, FrameMasking, WebSocketDecoder, WebSocketEncoder, WebSocketEvent,
};

/// The subprotocol by which a port-forward over SPDY is tunnelled through WebSocket messages.
pub const TUNNEL_PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";

/// The channel of exec and attach that closes another one.
pub const CLOSE_CHANNEL: u8 = 255;
/// The channels of exec and attach.
pub const STDIN: u8 = 0;
/// What the process writes to its output.
pub const STDOUT: u8 = 1;
/// What the process writes to its error output.
pub const STDERR: u8 = 2;
/// How the command ended.
pub const ERROR: u8 = 3;
/// The sizes of the terminal.
pub const RESIZE: u8 = 4;

/// The status code of a close without an error.
const CLOSE_NORMAL: u16 = 1000;

/// A subprotocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelProtocol {
    /// As V4, and a client may close its input.
    V5,
    /// The error channel has a Status with the exit code.
    V4,
    /// V4 in text, with base64.
    V4Base64,
    /// The error channel has a text, or nothing if all is well.
    V1,
    /// V1 in text, with base64.
    V1Base64,
    /// V1 by a client that names no subprotocol.
    Unnamed,
}

impl ChannelProtocol {
    /// The name in the handshake; none of a client that names none.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::V5 => "v5.channel.k8s.io",
            Self::V4 => "v4.channel.k8s.io",
            Self::V4Base64 => "v4.base64.channel.k8s.io",
            Self::V1 => "channel.k8s.io",
            Self::V1Base64 => "base64.channel.k8s.io",
            Self::Unnamed => return None,
        })
    }

    /// The first subprotocol that a client of exec or attach offers and that is known.
    pub fn of_command(offered: &[&str]) -> Option<Self> {
        let known = [Self::V5, Self::V4, Self::V4Base64, Self::V1, Self::V1Base64];
        choose(&known, offered)
    }

    /// The first subprotocol that a client of port-forward offers and that is known, other than the tunnel.
    pub fn of_port_forward(offered: &[&str]) -> Option<Self> {
        choose(&[Self::V4, Self::V4Base64], offered)
    }

    /// Whether payloads are base64 in messages of text.
    fn is_base64(self) -> bool {
        matches!(self, Self::V4Base64 | Self::V1Base64)
    }

    /// Whether the error channel has a Status, rather than a text.
    pub fn has_status(self) -> bool {
        matches!(self, Self::V5 | Self::V4 | Self::V4Base64)
    }
}

fn choose(known: &[ChannelProtocol], offered: &[&str]) -> Option<ChannelProtocol> {
    if offered.is_empty() {
        return Some(ChannelProtocol::Unnamed);
    }
    let find = |name: &&str| known.iter().find(|protocol| protocol.name() == Some(*name));
    offered.iter().find_map(find).copied()
}

/// What the other end did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelEvent {
    /// It sent bytes on a channel.
    Data {
        /// The number of the channel.
        channel: u8,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// It sends no more on that channel.
    Close(u8),
    /// It sends no more at all.
    End,
}

/// One end of a WebSocket with channels.
#[derive(Debug)]
pub struct ChannelSocket {
    protocol: ChannelProtocol,
    decoder: WebSocketDecoder,
    encoder: WebSocketEncoder,
    message: MessageState,
}

/// The message that is received.
#[derive(Debug, Default)]
struct MessageState {
    channel: Option<u8>,
    /// Characters of base64 that are not a group of four yet, or the target of a close.
    carry: Vec<u8>,
}

impl ChannelSocket {
    /// The end of a server.
    pub fn server(protocol: ChannelProtocol) -> Self {
        Self::new(protocol, FrameMasking::Masked, FrameMask::None)
    }

    /// The end of a client, which masks its frames.
    pub fn client(protocol: ChannelProtocol, mask: FrameMask) -> Self {
        Self::new(protocol, FrameMasking::Unmasked, mask)
    }

    fn new(protocol: ChannelProtocol, masking: FrameMasking, mask: FrameMask) -> Self {
        Self {
            protocol,
            decoder: WebSocketDecoder::new(masking),
            encoder: WebSocketEncoder::new(mask),
            message: MessageState::default(),
        }
    }

    /// The subprotocol.
    pub fn protocol(&self) -> ChannelProtocol {
        self.protocol
    }

    /// Decodes what came; answers to pings are added to `replies`.
    ///
    /// # Errors
    /// When the protocol does not allow what came.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        replies: &mut Vec<u8>,
    ) -> Result<Vec<ChannelEvent>, StreamingError> {
        let mut events = Vec::new();
        for event in self.decoder.feed(bytes)? {
            match event {
                WebSocketEvent::Data { bytes, is_last, .. } => {
                    self.piece(bytes, is_last, &mut events)?;
                }
                WebSocketEvent::Ping(payload) => self.encoder.pong(&payload, replies),
                WebSocketEvent::Pong => {}
                WebSocketEvent::Close(_) => events.push(ChannelEvent::End),
            }
        }
        Ok(events)
    }

    fn piece(
        &mut self,
        bytes: Vec<u8>,
        is_last: bool,
        events: &mut Vec<ChannelEvent>,
    ) -> Result<(), StreamingError> {
        let (channel, bytes) = match (self.message.channel, bytes.split_first()) {
            (Some(channel), _) => (channel, bytes),
            (None, Some((first, rest))) => (self.number(*first)?, rest.to_vec()),
            (None, None) => return Ok(()),
        };
        self.message.channel = Some(channel).filter(|_| !is_last);
        if channel == CLOSE_CHANNEL && self.protocol == ChannelProtocol::V5 {
            return self.close_piece(&bytes, is_last, events);
        }
        let bytes = if self.protocol.is_base64() { self.decode(bytes, is_last)? } else { bytes };
        if !bytes.is_empty() {
            events.push(ChannelEvent::Data { channel, bytes });
        }
        Ok(())
    }

    fn number(&self, first: u8) -> Result<u8, StreamingError> {
        if !self.protocol.is_base64() {
            return Ok(first);
        }
        first.checked_sub(b'0').ok_or(StreamingError::Channel("the channel is no digit"))
    }

    fn close_piece(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        events: &mut Vec<ChannelEvent>,
    ) -> Result<(), StreamingError> {
        self.message.carry.extend_from_slice(bytes);
        if self.message.carry.len() > 1 {
            return Err(StreamingError::Channel("a close names more than one channel"));
        }
        if is_last {
            let target = std::mem::take(&mut self.message.carry);
            let channel = *target.first().ok_or(StreamingError::Channel("a close of nothing"))?;
            events.push(ChannelEvent::Close(channel));
        }
        Ok(())
    }

    fn decode(&mut self, bytes: Vec<u8>, is_last: bool) -> Result<Vec<u8>, StreamingError> {
        let invalid = StreamingError::Channel("a message is not base64");
        self.message.carry.extend(bytes);
        let whole = self.message.carry.len() / 4 * 4;
        let rest = self.message.carry.split_off(whole);
        let text = std::mem::replace(&mut self.message.carry, rest);
        if is_last && !self.message.carry.is_empty() {
            return Err(invalid);
        }
        STANDARD.decode(text).map_err(|_| invalid)
    }

    /// Encodes a message.
    pub fn send(&mut self, channel: u8, bytes: &[u8], out: &mut Vec<u8>) {
        if self.protocol.is_base64() {
            let digit = char::from(b'0'.saturating_add(channel));
            self.encoder.text(&format!("{digit}{}", STANDARD.encode(bytes)), out);
        } else {
            self.encoder.binary(&[channel], bytes, out);
        }
    }

    /// Encodes that no more comes on that channel. Only V5 can say so.
    pub fn close_channel(&mut self, channel: u8, out: &mut Vec<u8>) {
        if self.protocol == ChannelProtocol::V5 {
            self.encoder.binary(&[CLOSE_CHANNEL], &[channel], out);
        }
    }

    /// Encodes a ping.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        self.encoder.ping(out);
    }

    /// Encodes that no more comes at all.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.encoder.close(CLOSE_NORMAL, out);
    }
}
