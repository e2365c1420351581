//! Bodies of responses, which have to come at a pace: a registry that trickles would hold a pull for ever.

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use tokio::time::{Instant, timeout};

use crate::error::RegistryError;
use crate::settings::TransferLimits;

/// The body of a response.
#[derive(Debug)]
pub(crate) struct PacedBody {
    body: Incoming,
    url: String,
    limits: TransferLimits,
    window_began: Instant,
    in_window: u64,
}

impl PacedBody {
    pub(crate) fn new(body: Incoming, url: String, limits: TransferLimits) -> Self {
        Self { body, url, limits, window_began: Instant::now(), in_window: 0 }
    }

    /// The next piece, or none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        loop {
            let limit = self.limits.stall;
            let late = |_| RegistryError::TimedOut {
                what: "more of the body",
                url: self.url.clone(),
                limit,
            };
            let frame = timeout(limit, self.body.frame()).await.map_err(late)?;
            let Some(frame) = frame else { return Ok(None) };
            let broken = |error: hyper::Error| RegistryError::Unreachable {
                url: self.url.clone(),
                why: crate::transport::causes(&error),
            };
            // Trailers are no content.
            if let Ok(bytes) = frame.map_err(broken)?.into_data() {
                self.count(bytes.len() as u64)?;
                return Ok(Some(bytes));
            }
        }
    }

    fn count(&mut self, bytes: u64) -> Result<(), RegistryError> {
        self.in_window += bytes;
        if self.window_began.elapsed() < self.limits.window {
            return Ok(());
        }
        if self.in_window < self.limits.least_bytes {
            return Err(RegistryError::TooSlow {
                url: self.url.clone(),
                bytes: self.in_window,
                window: self.limits.window,
                least: self.limits.least_bytes,
            });
        }
        (self.window_began, self.in_window) = (Instant::now(), 0);
        Ok(())
    }

    /// All of it, if it is no more than that.
    pub(crate) async fn read_all(mut self, most: usize) -> Result<Vec<u8>, RegistryError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            if whole.len() + bytes.len() > most {
                let why = format!("it has more than {most} bytes");
                return Err(RegistryError::Malformed { url: self.url, why });
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }
}
