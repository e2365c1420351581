//! The relay of a tunnelled port-forward: the bytes of a SPDY connection are the payloads of WebSocket messages.

use super::{Relay, RelayOutput};
use crate::StreamingError;
use crate::websocket::{
    FrameMask, FrameMasking, WebSocketDecoder, WebSocketEncoder, WebSocketEvent,
};

const CLOSE_NORMAL: u16 = 1000;

/// Unwraps what the client sends, and wraps what the runtime sends.
#[derive(Debug)]
pub struct TunnelRelay {
    decoder: WebSocketDecoder,
    encoder: WebSocketEncoder,
}

impl Default for TunnelRelay {
    fn default() -> Self {
        Self {
            decoder: WebSocketDecoder::new(FrameMasking::Masked),
            encoder: WebSocketEncoder::new(FrameMask::None),
        }
    }
}

impl Relay for TunnelRelay {
    fn client_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        for event in self.decoder.feed(bytes)? {
            match event {
                WebSocketEvent::Data { is_text: true, .. } => {
                    return Err(StreamingError::Channel("a tunnel has messages of bytes only"));
                }
                WebSocketEvent::Data { bytes, .. } => out.to_runtime.extend(bytes),
                WebSocketEvent::Ping(payload) => self.encoder.pong(&payload, &mut out.to_client),
                WebSocketEvent::Pong => {}
                WebSocketEvent::Close(_) => out.is_done = true,
            }
        }
        Ok(())
    }

    fn runtime_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        self.encoder.binary(&[], bytes, &mut out.to_client);
        Ok(())
    }

    fn probe_client(&mut self, out: &mut RelayOutput) {
        self.encoder.ping(&mut out.to_client);
    }

    fn finish(&mut self, out: &mut RelayOutput) {
        self.encoder.close(CLOSE_NORMAL, &mut out.to_client);
    }
}
