//! Clients without credentials that connect over TLS, send a part of a request's head and then nothing, and come back when they are
//! disconnected.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{ServerConnector, raise_descriptor_limit};

/// How long a client waits for the server before it comes back.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a client that was disconnected waits before it comes back.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Addresses of the clients. The server closes the connections of the address that has the most.
const ADDRESSES: usize = 20;

/// Clients of one server; they are gone when this is dropped.
pub struct UnfinishedRequests {
    begun: Arc<AtomicUsize>,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl UnfinishedRequests {
    /// Starts so many clients.
    ///
    /// # Errors
    /// When TLS or the thread cannot be set up.
    pub fn begin(server: SocketAddr, count: usize) -> Result<Self> {
        raise_descriptor_limit()?;
        let connector = ServerConnector::new(server, None)?;
        let (begun, end) = (Arc::<AtomicUsize>::default(), CancellationToken::new());
        let clients = (0..count).map({
            let begun = Arc::clone(&begun);
            move |number| client(connector.clone(), address(number), Arc::clone(&begun))
        });
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let ended = end.clone().cancelled_owned();
        let thread = thread::Builder::new().name("clients".to_owned()).spawn(move || {
            // Real clients compute on their own machines: these get only what this one has to spare. A failure makes the test harder.
            rustix::process::nice(19).ok();
            runtime.block_on(async {
                tokio::select! {
                    _ = join_all(clients) => {}
                    () = ended => {}
                }
            });
        })?;
        Ok(Self { begun, end, thread: Some(thread) })
    }

    /// How many heads were begun since the start.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }
}

impl Drop for UnfinishedRequests {
    fn drop(&mut self) {
        self.end.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            thread.join().ok();
        }
    }
}

/// Every address of this network is this machine's own.
fn address(number: usize) -> SocketAddr {
    let last = u8::try_from(number % ADDRESSES).unwrap_or_default();
    SocketAddr::from((Ipv4Addr::new(127, 0, 1, last + 1), 0))
}

async fn client(connector: ServerConnector, address: SocketAddr, begun: Arc<AtomicUsize>) {
    loop {
        // A connection that is refused or closed is what is to be expected.
        timeout(PATIENCE, send_half(&connector, address, &begun)).await.ok();
        sleep(RECONNECT_DELAY).await;
    }
}

async fn send_half(
    connector: &ServerConnector,
    address: SocketAddr,
    begun: &AtomicUsize,
) -> Result<()> {
    let mut stream = connector.connect_from(address).await?;
    stream.write_all(b"GET /pods HTTP/1.1\r\nHost: node\r\nAuthorization: Bea").await?;
    stream.flush().await?;
    begun.fetch_add(1, Ordering::Relaxed);
    // Until the server gives up.
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}
