//! What a process writes, on its way to the client.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;

use super::READ_BYTES;
use super::connection::ClientWriter;

/// What a process has left behind may hold its output open. It is read until nothing comes for so long,
const LONGEST_SILENCE: Duration = Duration::from_secs(2);
/// or so many bytes, more than any pipe holds.
const MAX_BYTES_AFTER_END: usize = 1 << 20;

/// A process's output, and the stream that it goes to; to nowhere, if the client has none for it.
pub(super) struct ProcessOutput {
    pub(super) from: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) to: Option<u32>,
}

impl ProcessOutput {
    /// Passes bytes on until the output ends. None when the client is gone.
    pub(super) async fn copy<S: AsyncWrite>(
        mut self,
        writer: &Mutex<ClientWriter<S>>,
        mut has_ended: watch::Receiver<bool>,
    ) -> Option<()> {
        let mut buffer = vec![0; READ_BYTES];
        let mut left = MAX_BYTES_AFTER_END;
        while left > 0 {
            let length = tokio::select! {
                biased;
                // The end of a terminal is an error.
                read = self.from.read(&mut buffer) => read.unwrap_or(0),
                () = silence_after(&mut has_ended) => 0,
            };
            let bytes = buffer.get(..length).filter(|bytes| !bytes.is_empty());
            let Some(bytes) = bytes else { break };
            if let Some(stream) = self.to {
                writer.lock().await.data(stream, bytes).await?;
            }
            if *has_ended.borrow() {
                left = left.saturating_sub(length);
            }
        }
        Some(())
    }
}

async fn silence_after(has_ended: &mut watch::Receiver<bool>) {
    // Its sender ends later than this.
    has_ended.wait_for(|has_ended| *has_ended).await.ok();
    sleep(LONGEST_SILENCE).await;
}
