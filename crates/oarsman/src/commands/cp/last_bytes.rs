//! The end of what a program writes, so that what it writes without end takes no memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

const MAX_BYTES: usize = 4 * 1024;

/// Keeps the last bytes that are written to it.
#[derive(Debug, Default)]
pub(super) struct LastBytes(Vec<u8>);

impl LastBytes {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

impl AsyncWrite for LastBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(bytes);
        let excess = self.0.len().saturating_sub(MAX_BYTES);
        self.0.drain(..excess);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn the_end_is_kept() {
        let mut errors = LastBytes::default();
        errors.write_all(&[b'x'; 3 * MAX_BYTES]).await.unwrap();
        errors.write_all(b"tar: no such file\n").await.unwrap();
        assert_eq!(errors.0.len(), MAX_BYTES);
        assert!(errors.text().ends_with("xtar: no such file"));
    }
}
