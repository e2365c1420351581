//! The relay of port-forward over WebSocket channels: two for each port, of data and of errors.

use super::runtime_streams::{RuntimeStreams, StreamEvent};
use super::{Relay, RelayOutput};
use crate::StreamingError;
use crate::channels::{ChannelEvent, ChannelProtocol, ChannelSocket};

/// Each port has two of at most 255 channels.
const MAX_PORTS: usize = 127;

/// Relays connections to some ports, one for each.
#[derive(Debug)]
pub struct PortForwardRelay {
    ports: Vec<u16>,
    socket: ChannelSocket,
    streams: RuntimeStreams,
}

impl PortForwardRelay {
    /// Relays between a client with that subprotocol and ports of a pod; none for more ports than there are channels.
    pub fn new(protocol: ChannelProtocol, ports: Vec<u16>) -> Option<Self> {
        let socket = ChannelSocket::server(protocol);
        let is_possible = ports.len() <= MAX_PORTS;
        is_possible.then(|| Self { ports, socket, streams: RuntimeStreams::default() })
    }
}

impl Relay for PortForwardRelay {
    fn start(&mut self, out: &mut RelayOutput) {
        for (index, port) in (0u8..).zip(&self.ports) {
            for (channel, kind) in [(index * 2 + 1, "error"), (index * 2, "data")] {
                let headers = [
                    ("streamtype", kind.to_owned()),
                    ("port", port.to_string()),
                    ("requestid", index.to_string()),
                ];
                let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
                self.streams.open(channel, headers, &mut out.to_runtime);
                // The client is told on each channel to which port it belongs.
                self.socket.send(channel, &port.to_le_bytes(), &mut out.to_client);
            }
        }
    }

    fn is_accepted(&self) -> bool {
        self.streams.are_accepted()
    }

    fn client_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        for event in self.socket.feed(bytes, &mut out.to_client)? {
            match event {
                ChannelEvent::Data { channel, bytes } if channel.is_multiple_of(2) => {
                    self.streams.send(channel, &bytes, &mut out.to_runtime);
                }
                ChannelEvent::Data { .. } | ChannelEvent::Close(_) => {}
                ChannelEvent::End => out.is_done = true,
            }
        }
        Ok(())
    }

    fn runtime_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        for event in self.streams.feed(bytes, &mut out.to_runtime)? {
            if let StreamEvent::Data(channel, bytes) = event {
                self.socket.send(channel, &bytes, &mut out.to_client);
            }
        }
        out.is_done |= self.streams.are_ended(|_| true);
        Ok(())
    }

    fn probe_client(&mut self, out: &mut RelayOutput) {
        self.socket.ping(&mut out.to_client);
    }

    fn finish(&mut self, out: &mut RelayOutput) {
        self.socket.close(&mut out.to_client);
    }
}
