//! The relay of a client that speaks SPDY: bytes as they are.

use super::{Relay, RelayOutput};
use crate::StreamingError;

/// Passes bytes on unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteRelay;

impl Relay for ByteRelay {
    fn client_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        out.to_runtime.extend_from_slice(bytes);
        Ok(())
    }

    fn runtime_sent(&mut self, bytes: &[u8], out: &mut RelayOutput) -> Result<(), StreamingError> {
        out.to_client.extend_from_slice(bytes);
        Ok(())
    }
}
