//! The relay of one forwarded connection: plain bytes of a local client, and a pair of SPDY streams.

use std::sync::{Arc, OnceLock};

use super::runtime_streams::{RuntimeStreams, StreamEvent};
use super::{Relay, RelayOutput};
use crate::StreamingError;

const DATA: u8 = 0;
const ERROR: u8 = 1;
const MAX_ERROR_BYTES: usize = 4096;

/// Relays a connection to one port.
#[derive(Debug)]
pub struct ForwardRelay {
    port: u16,
    streams: RuntimeStreams,
    error: Vec<u8>,
    failure: Arc<OnceLock<String>>,
}

impl ForwardRelay {
    /// Relays to that port; the second value is what the other end says when it fails.
    pub fn new(port: u16) -> (Self, Arc<OnceLock<String>>) {
        let failure = Arc::<OnceLock<String>>::default();
        let (streams, error) = (RuntimeStreams::default(), Vec::new());
        (Self { port, streams, error, failure: Arc::clone(&failure) }, failure)
    }
}

impl Relay for ForwardRelay {
    fn start(&mut self, out: &mut RelayOutput) {
        for (channel, kind) in [(ERROR, "error"), (DATA, "data")] {
            let headers = [
                ("streamtype", kind.to_owned()),
                ("port", self.port.to_string()),
                ("requestid", "0".to_owned()),
            ];
            let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
            self.streams.open(channel, headers, &mut out.to_runtime);
        }
    }

    fn is_accepted(&self) -> bool {
        self.streams.are_accepted()
    }

    fn client_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        self.streams.send(DATA, bytes, &mut out.to_runtime);
        Ok(())
    }

    fn client_ended(&mut self, out: &mut RelayOutput) {
        self.streams.close(DATA, &mut out.to_runtime);
    }

    fn runtime_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        for event in self.streams.feed(bytes, &mut out.to_runtime)? {
            match event {
                StreamEvent::Data(DATA, bytes) => out.to_client.extend(bytes),
                StreamEvent::Data(_, bytes) if self.error.len() < MAX_ERROR_BYTES => {
                    self.error.extend(bytes);
                }
                StreamEvent::Data(..) | StreamEvent::End(_) => {}
            }
        }
        out.is_done |= self.streams.are_ended(|_| true);
        Ok(())
    }

    fn finish(&mut self, _out: &mut RelayOutput) {
        if !self.error.is_empty() {
            // It is set once, here.
            self.failure.set(String::from_utf8_lossy(&self.error).into_owned()).ok();
        }
    }
}
