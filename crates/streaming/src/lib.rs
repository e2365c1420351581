//! exec, attach and port-forward: the codecs of WebSocket and SPDY/3.1, and the relay between a client and a runtime.
//!
//! The codecs and the relays have no I/O: they turn bytes of one side into bytes for the other ([`relay::Relay`]), and
//! [`relay::run`] moves the bytes. A server answers its client, connects to the runtime by [`connect`], and runs a relay. A runtime in this
//! process answers such a relay by [`runtime_end`].

pub mod channels;
pub mod command_client;
pub mod connect;
pub mod relay;
pub mod runtime_end;
pub mod spdy;
pub mod websocket;

use thiserror::Error;

/// Why a streaming connection ended early.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum StreamingError {
    /// A frame that the WebSocket protocol does not allow.
    #[error("invalid WebSocket frame: {0}")]
    WebSocket(&'static str),
    /// A frame that SPDY/3.1 does not allow, or that is larger than any that is needed here.
    #[error("invalid SPDY frame: {0}")]
    Spdy(&'static str),
    /// A message that the subprotocol does not allow.
    #[error("invalid message: {0}")]
    Channel(&'static str),
    /// Nothing was sent for the idle time-out.
    #[error("connection closed: idle for too long")]
    Idle,
    /// The runtime did not accept the streams in time.
    #[error("the runtime did not accept the streams in time")]
    NotAccepted,
    /// A side failed.
    #[error("{side} failed: {message}")]
    Io {
        /// Which side.
        side: &'static str,
        /// What the system says.
        message: String,
    },
}
