//! A blob's way to the disk. What breaks off goes on where it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Bytes;
use oarsman_host::blocking;
use oarsman_image_store::{Descriptor, ImageStore, Lease, PartialBlob, PartialOutcome, StoreError};
use tokio::time::{Instant, sleep};

use crate::error::RegistryError;
use crate::host_session::HostSession;
use crate::pull::PullCounters;
use crate::settings::TransferLimits;

/// Bytes that are collected for one write: a frame has 16 KiB, and each write goes to another thread.
const CHUNK: usize = 1 << 20;
/// How often it is looked whether another pull has finished with a blob.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// How long another pull may hold a blob.
const MAX_BUSY: Duration = Duration::from_secs(600);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// What all downloads of a pull share.
#[derive(Clone, Debug)]
pub(crate) struct Downloads {
    pub(crate) store: ImageStore,
    pub(crate) lease: Arc<Lease>,
    /// The hosts that may be asked for content, in their order.
    pub(crate) hosts: Arc<Vec<HostSession>>,
    pub(crate) counters: Arc<PullCounters>,
    pub(crate) limits: TransferLimits,
}

/// Does blocking work with the store.
pub(crate) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    blocking::run(work, |error| RegistryError::Panicked(error.to_string())).await
}

impl Downloads {
    /// Brings a blob into the store.
    pub(crate) async fn fetch(&self, blob: &Descriptor) -> Result<(), RegistryError> {
        for is_last in [false, true] {
            let Some(partial) = self.open(blob).await? else {
                self.counters.done.fetch_add(blob.size, Ordering::Relaxed);
                return Ok(());
            };
            let resumed = partial.offset();
            self.counters.done.fetch_add(resumed, Ordering::Relaxed);
            match self.fetch_rest(partial, blob).await {
                // What an earlier pull has left may be what was wrong: the file is gone, and the blob is begun anew.
                Err(RegistryError::Store(StoreError::Mismatch { .. }))
                    if resumed > 0 && !is_last =>
                {
                    self.counters.done.fetch_sub(blob.size, Ordering::Relaxed);
                }
                other => return other,
            }
        }
        Ok(())
    }

    /// Brings the rest of a blob into the store. The hosts are asked in turns.
    async fn fetch_rest(
        &self,
        mut partial: PartialBlob,
        blob: &Descriptor,
    ) -> Result<(), RegistryError> {
        let mut failures = Vec::new();
        for session in self.hosts.iter() {
            let (rest, outcome) = self.fetch_from(session, partial, blob).await?;
            match outcome {
                Ok(()) => return on_disk(move || Ok(rest.finish()?)).await,
                Err(error) => failures.push(error),
            }
            partial = rest;
        }
        Err(match failures.len() {
            1 => failures.remove(0),
            _ => RegistryError::AllHosts { image: format!("blob {}", blob.digest), failures },
        })
    }

    /// The file of a blob; none when the blob is there. Another pull that downloads it is waited for.
    async fn open(&self, blob: &Descriptor) -> Result<Option<PartialBlob>, RegistryError> {
        let began = Instant::now();
        while began.elapsed() < MAX_BUSY {
            let (store, lease, wanted) =
                (self.store.clone(), Arc::clone(&self.lease), blob.clone());
            match on_disk(move || Ok(store.open_partial(&lease, &wanted)?)).await? {
                PartialOutcome::Whole => return Ok(None),
                PartialOutcome::Partial(partial) => return Ok(Some(*partial)),
                PartialOutcome::Busy => sleep(BUSY_PAUSE).await,
            }
        }
        Err(RegistryError::Busy { blob: blob.digest.to_string(), waited: MAX_BUSY })
    }

    /// Downloads the rest of a blob from a host. The outer error is one of this machine, which no other host can help with.
    async fn fetch_from(
        &self,
        session: &HostSession,
        mut partial: PartialBlob,
        blob: &Descriptor,
    ) -> Result<(PartialBlob, Result<(), RegistryError>), RegistryError> {
        let (mut breaks, mut pause) = (0, self.limits.retry_pause);
        loop {
            let before = partial.offset();
            let (rest, outcome) = self.stream(session, partial, blob).await?;
            partial = rest;
            let Err(error) = outcome else { return Ok((partial, Ok(()))) };
            if !error.is_interruption() {
                return Ok((partial, Err(error)));
            }
            if partial.offset() > before {
                (breaks, pause) = (0, self.limits.retry_pause);
            }
            breaks += 1;
            if breaks > self.limits.retries {
                let (blob, at, size) = (blob.digest.to_string(), partial.offset(), blob.size);
                let last = Box::new(error);
                return Ok((partial, Err(RegistryError::GivenUp { blob, breaks, at, size, last })));
            }
            let object = blob.digest.to_string();
            let detail = format!("at byte {} of {}", partial.offset(), blob.size);
            tracing::info!(object, detail, %error, "download broke off, will go on");
            sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn stream(
        &self,
        session: &HostSession,
        mut partial: PartialBlob,
        blob: &Descriptor,
    ) -> Result<(PartialBlob, Result<(), RegistryError>), RegistryError> {
        if partial.offset() == blob.size {
            return Ok((partial, Ok(())));
        }
        let mut answer = match session.blob(&blob.digest, partial.offset()).await {
            Ok(answer) => answer,
            Err(error) => return Ok((partial, Err(error))),
        };
        // A host that began at the beginning sends what is here already.
        let mut known = partial.offset() - answer.offset;
        let mut chunk: Vec<Bytes> = Vec::new();
        let mut in_chunk = 0;
        loop {
            let next = answer.body.next().await;
            if let Ok(Some(bytes)) = &next {
                let skipped = usize::try_from(known).unwrap_or(usize::MAX).min(bytes.len());
                known -= skipped as u64;
                in_chunk += bytes.len() - skipped;
                chunk.push(bytes.slice(skipped..));
            }
            let is_over = !matches!(next, Ok(Some(_)));
            if in_chunk >= CHUNK || is_over {
                let written = std::mem::take(&mut chunk);
                partial = on_disk(move || Ok(partial.append(&written)?)).await?;
                self.counters.done.fetch_add(in_chunk as u64, Ordering::Relaxed);
                in_chunk = 0;
            }
            match next {
                Ok(Some(_)) => {}
                Ok(None) if partial.offset() < blob.size => {
                    let (at, size) = (partial.offset(), blob.size);
                    let why = format!("it ended after {at} of {size} bytes");
                    let url = session.host.authority.to_string();
                    return Ok((partial, Err(RegistryError::Unreachable { url, why })));
                }
                Ok(None) => return Ok((partial, Ok(()))),
                Err(error) => return Ok((partial, Err(error))),
            }
        }
    }
}
