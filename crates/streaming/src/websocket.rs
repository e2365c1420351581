//! WebSocket frames (RFC 6455), without extensions.

mod decoder;
mod encoder;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

pub use decoder::{FrameMasking, WebSocketDecoder, WebSocketEvent};
pub use encoder::{FrameMask, WebSocketEncoder};

/// The protocol's constant that a server mixes into the client's key.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A payload of a control frame has at most so many bytes.
const MAX_CONTROL_BYTES: usize = 125;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message before.
    Continuation,
    /// The begin of a message of text.
    Text,
    /// The begin of a message of bytes.
    Binary,
    /// The last frame of a side.
    Close,
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn is_control(self) -> bool {
        self.bits() >= 8
    }
}

/// The value of `Sec-WebSocket-Accept` for a client's `Sec-WebSocket-Key`.
pub fn accept_key(key: &str) -> String {
    let text = format!("{key}{KEY_SUFFIX}");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

/// Whether a client's `Sec-WebSocket-Key` is one: 16 bytes in base64.
pub fn is_valid_key(key: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}

/// A new `Sec-WebSocket-Key`, of bytes that are random.
pub fn new_key(random: [u8; 16]) -> String {
    STANDARD.encode(random)
}
