//! The thread on which clients over HTTPS are served.
//!
//! Every client may ask for a TLS handshake as often as it can connect, and each takes a millisecond or more of a processor. On the
//! threads of the agent a few hundred of them would be queued before the next step of every pod. On a thread of their own they take
//! one processor at most, and only other clients of the server wait for them.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// Beside the four that read logs, some for files of certificate authorities, for statistics and file systems, of which each kind has one,
/// and for checkpoints; and the ten of the embedded runtime's files and networks, which exec and port-forward use. A disk that hangs keeps those
/// of its kind, and no others.
const MAX_BLOCKING_THREADS: usize = 26;

/// A runtime with one thread. Tasks on it end when it is dropped.
#[derive(Debug)]
pub(crate) struct ServerThread {
    handle: Handle,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
}

impl ServerThread {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .thread_name("https-server")
            .enable_all()
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        // Does not wait: a read of a log may hang, and the caller is a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
