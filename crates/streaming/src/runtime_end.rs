//! The runtime's end of a connection: what a client asks for by its SPDY streams is answered by a process ([`CommandConnection`]) or by
//! ports ([`serve_ports`]).
//!
//! The other end is a relay of this crate, or a client that speaks SPDY itself.

mod command;
mod command_status;
mod connection;
mod output;
mod port_forward;
#[cfg(test)]
mod tests;

pub use command::{CommandConnection, ServedCommand};
pub use command_status::CommandOutcome;
pub use port_forward::serve_ports;

/// What is read at once of a process or a port.
const READ_BYTES: usize = 32 * 1024;
/// Pieces of a client's data that wait for a process or a port that is behind. Each has at most as many bytes as are read at once.
const MAX_WAITING_PIECES: usize = 16;

/// The value of a header of a stream.
fn header<'a>(headers: &'a crate::spdy::SpdyHeaders, wanted: &str) -> &'a str {
    headers.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str())
}
