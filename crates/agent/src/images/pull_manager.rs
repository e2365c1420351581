//! The pull manager: records on disk which images are pulled and with whose credentials, before and after every pull, and limits how often
//! registries are asked. The rules are in `core::image::pull_records` and `core::image::verification`.

use std::collections::BTreeMap;
use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_core::image::credentials::TrackedAuthConfig;
use oarsman_core::image::pull_records::{CompletedPull, ImagePullCredentials};
use oarsman_core::image::verification::{CredentialVerificationPolicy, PullHistory};
use oarsman_core::image_reference::full_name;
use oarsman_core::rate::TokenBucket;
use oarsman_cri_types::v1::Image;
use oarsman_state::{FileError, PullRecords};
use oarsman_sync::Guarded;
use tokio::sync::Mutex;

use super::ImageManagerConfig;

/// Pulls of the node and their records.
pub(crate) struct PullManager {
    records: Arc<dyn PullRecords>,
    clock: Arc<dyn Clock>,
    verification: Option<CredentialVerificationPolicy>,
    rate: Guarded<Option<TokenBucket>>,
    /// By image, as pods name it.
    in_flight: Guarded<BTreeMap<String, InFlight>>,
    /// Held while a file of an intent is written or removed, so that none is removed under a pull that has just begun.
    intent_files: Mutex<()>,
}

/// The pulls of one image.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    count: usize,
    /// One of them ended without an answer: the image may come all the same, and the intent stays until the image is found.
    is_abandoned: bool,
}

/// A pull that is recorded as begun. One that is dropped stays recorded: the image may have come all the same.
pub(crate) struct PullIntent<'m> {
    manager: &'m PullManager,
    image: String,
    is_over: bool,
}

impl PullManager {
    pub(crate) fn new(
        records: Arc<dyn PullRecords>,
        clock: Arc<dyn Clock>,
        config: &ImageManagerConfig,
    ) -> Self {
        Self {
            records,
            clock,
            verification: config.verification.clone(),
            rate: Guarded::new(config.pull_rate),
            in_flight: Guarded::default(),
            intent_files: Mutex::default(),
        }
    }

    /// Which pods have to prove that they may use an image; none if no pod has to.
    pub(crate) fn verification(&self) -> Option<&CredentialVerificationPolicy> {
        self.verification.as_ref()
    }

    /// Whether a registry may be asked now.
    pub(crate) fn take_pull(&self) -> bool {
        let now = self.clock.mono();
        self.rate.lock().as_mut().is_none_or(|rate| rate.take(now).is_ok())
    }

    /// What the disk says of earlier pulls of an image. Intents are read first: one that is gone has been replaced by a record.
    pub(crate) async fn history(&self, image_ref: &str) -> PullHistory {
        let unreadable = |error: &FileError| {
            tracing::warn!(image = image_ref, %error, "pull records not read, image is verified by a pull");
            PullHistory::Unreadable
        };
        let intents = match self.records.intents().await {
            Ok(intents) => intents,
            Err(error) => return unreadable(&error),
        };
        match self.records.pulled(image_ref).await {
            Ok(record) => PullHistory::Known { record, intents },
            Err(error) => unreadable(&error),
        }
    }

    /// Records that an image is about to be pulled. Nothing is recorded where nothing is verified.
    ///
    /// # Errors
    /// When that cannot be recorded: the image must not be pulled then.
    pub(crate) async fn begin(&self, image: &str) -> Result<PullIntent<'_>, FileError> {
        let mut intent = PullIntent { manager: self, image: image.to_owned(), is_over: true };
        if self.verification.is_none() {
            return Ok(intent);
        }
        let _files = self.intent_files.lock().await;
        self.in_flight.lock().entry(image.to_owned()).or_default().count += 1;
        intent.is_over = false;
        if self.records.write_intent(image).await? {
            let mut in_flight = self.in_flight.lock();
            let this = in_flight.entry(image.to_owned()).or_default();
            // Of an agent before this one, or of a Go kubelet.
            this.is_abandoned |= this.count == 1;
        }
        Ok(intent)
    }

    /// Adds a pull to the record of its image.
    async fn record(&self, pull: &CompletedPull) -> bool {
        let written = self.records.record_pulled(pull).await;
        if let Err(error) = &written {
            tracing::warn!(image = pull.image, %error, "pull record not written, the next pod has to pull the image");
        }
        written.is_ok()
    }

    /// Records that a pod has proved its right to an image by other credentials than were recorded.
    pub(crate) async fn record_credentials(
        &self,
        image: &str,
        image_ref: &str,
        credentials: ImagePullCredentials,
    ) {
        self.record(&self.pull(image, image_ref, Some(credentials))).await;
    }

    fn pull(
        &self,
        image: &str,
        image_ref: &str,
        credentials: Option<ImagePullCredentials>,
    ) -> CompletedPull {
        CompletedPull {
            image: image.to_owned(),
            image_ref: image_ref.to_owned(),
            credentials,
            at: self.clock.wall(),
        }
    }

    /// Replaces intents of pulls that ended without an answer by records of the images that came. Every pod has to prove its right to these.
    pub(crate) async fn settle_intents(&self, images: &[Image]) {
        let intents = match self.records.intents().await {
            Ok(intents) => intents.images,
            Err(error) => {
                tracing::warn!(object = "pull intents", %error, "pull intents not listed, they stay");
                return;
            }
        };
        for intended in intents.iter().filter(|image| !self.is_pulled_now(image)) {
            let name = full_name(intended);
            let has_name = |image: &&Image| {
                let names = image.repo_tags.iter().chain(&image.repo_digests);
                names.map(|name| full_name(name)).any(|found| found == name)
            };
            for image in images.iter().filter(has_name) {
                if self.record(&self.pull(intended, &image.id, None)).await {
                    self.end(intended).await;
                }
            }
        }
    }

    /// Removes records of images that are gone. `listed` is when listing began.
    pub(crate) async fn prune_records(&self, images: &[Image], listed: jiff::Timestamp) {
        let recorded = match self.records.recorded_images().await {
            Ok(recorded) => recorded,
            Err(error) => {
                tracing::warn!(object = "pull records", %error, "pull records not listed, those of images that are gone stay");
                return;
            }
        };
        let is_gone = |recorded: &&String| images.iter().all(|image| image.id != **recorded);
        for image in recorded.iter().filter(is_gone) {
            if let Err(error) = self.records.remove_pulled(image, listed).await {
                tracing::warn!(%image, %error, "pull record of image that is gone not removed");
            }
        }
    }

    fn is_pulled_now(&self, image: &str) -> bool {
        self.in_flight.lock().get(image).is_some_and(|pulls| pulls.count > 0)
    }

    /// Removes an intent, unless a pull has begun meanwhile.
    async fn end(&self, image: &str) {
        let _files = self.intent_files.lock().await;
        if self.is_pulled_now(image) {
            return;
        }
        self.in_flight.lock().remove(image);
        if let Err(error) = self.records.remove_intent(image).await {
            tracing::warn!(image, %error, "pull intent not removed");
        }
    }

    /// One pull fewer.
    fn leave(&self, image: &str, is_abandoned: bool) {
        let mut in_flight = self.in_flight.lock();
        if let Some(pulls) = in_flight.get_mut(image) {
            pulls.count = pulls.count.saturating_sub(1);
            pulls.is_abandoned |= is_abandoned;
        }
    }
}

impl PullIntent<'_> {
    /// The image came, by that credential or without any. An intent without a record stays: it tells that the image was pulled.
    pub(crate) async fn succeeded(self, image_ref: &str, credential: Option<&TrackedAuthConfig>) {
        if self.is_over {
            return;
        }
        let credentials = ImagePullCredentials::of_pull(credential);
        let pull = self.manager.pull(&self.image, image_ref, Some(credentials));
        if self.manager.record(&pull).await {
            self.finish().await;
        }
    }

    /// The image did not come, for certain.
    pub(crate) async fn failed(self) {
        if !self.is_over {
            self.finish().await;
        }
    }

    async fn finish(mut self) {
        self.manager.leave(&self.image, false);
        self.is_over = true;
        let pulls = self.manager.in_flight.lock().get(&self.image).copied().unwrap_or_default();
        if pulls.count == 0 && !pulls.is_abandoned {
            self.manager.end(&self.image).await;
        }
    }
}

impl Drop for PullIntent<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.manager.leave(&self.image, true);
        }
    }
}
