//! Relays between a client and a runtime: what one side sends becomes what the other side gets.
//!
//! A runtime speaks SPDY/3.1. A client speaks the same ([`ByteRelay`]), the same in messages of a WebSocket ([`TunnelRelay`]), or
//! channels over WebSocket ([`RemoteCommandRelay`], [`PortForwardRelay`]). A command on this machine forwards plain bytes ([`ForwardRelay`]).

mod byte_relay;
mod forward;
mod port_forward;
mod pump;
mod remote_command;
mod runtime_streams;
#[cfg(test)]
mod tests;
mod tunnel;

use crate::StreamingError;

pub use byte_relay::ByteRelay;
pub use forward::ForwardRelay;
pub use port_forward::PortForwardRelay;
pub use pump::{RelayReport, run};
pub use remote_command::{RemoteCommandRelay, RemoteCommandStreams};
pub use tunnel::TunnelRelay;

/// What a relay has for its sides.
#[derive(Debug, Default)]
pub struct RelayOutput {
    /// Bytes for the client.
    pub to_client: Vec<u8>,
    /// Bytes for the runtime.
    pub to_runtime: Vec<u8>,
    /// Whether nothing more is to be relayed once the bytes are sent.
    pub is_done: bool,
}

/// Turns bytes of one side into bytes for the other, without I/O.
pub trait Relay: Send {
    /// What is sent before anything comes.
    fn start(&mut self, _out: &mut RelayOutput) {}

    /// Whether the runtime has accepted what was sent at the start. Bytes of the client wait for it.
    fn is_accepted(&self) -> bool {
        true
    }

    /// Takes bytes of the client.
    ///
    /// # Errors
    /// When the client's protocol does not allow them.
    fn client_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError>;

    /// The client sends no more. By default that is the end of the relay.
    fn client_ended(&mut self, out: &mut RelayOutput) {
        out.is_done = true;
    }

    /// The client is not read, because the runtime takes nothing: sends something that shows whether it is still there, where its protocol has that.
    fn probe_client(&mut self, _out: &mut RelayOutput) {}

    /// Takes bytes of the runtime.
    ///
    /// # Errors
    /// When SPDY does not allow them.
    fn runtime_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError>;

    /// What the client is sent at last, after the runtime has ended or anything failed.
    fn finish(&mut self, _out: &mut RelayOutput) {}
}
