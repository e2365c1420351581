//! A streaming connection within this process.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{DuplexStream, duplex};

/// Bytes that either side may be behind.
const BUFFER: usize = 64 << 10;

/// The client's end of a connection on which the runtime speaks SPDY/3.1 as at a URL after the upgrade: `v4.channel.k8s.io` for commands,
/// `portforward.k8s.io` for ports. It can be taken once.
#[derive(Clone, Debug)]
pub struct StreamingSession(Arc<Mutex<Option<DuplexStream>>>);

impl StreamingSession {
    /// A session, and the runtime's end of it.
    pub fn new() -> (Self, DuplexStream) {
        let (client, runtime) = duplex(BUFFER);
        (Self(Arc::new(Mutex::new(Some(client)))), runtime)
    }

    /// The connection; none when it was taken before.
    pub fn take(&self) -> Option<DuplexStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl PartialEq for StreamingSession {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for StreamingSession {}
