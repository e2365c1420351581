//! The seam to records of image pulls, on the fake disk. All of them are synced as they are written.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use oarsman_core::image::pull_records::{
    CompletedPull, ImagePulledRecord, PullIntents, PullRecordCounts, file_name, intent_text,
    parse_intent,
};
use oarsman_state::{FileError, PullRecords};

use super::FakeDisk;
use crate::lock;

/// The texts of the files, by their names.
#[derive(Debug, Default)]
pub(super) struct StoredPullRecords {
    pulling: BTreeMap<String, String>,
    pulled: BTreeMap<String, String>,
}

impl FakeDisk {
    /// Overwrites the record of an image, as a disk that loses bits does.
    pub fn break_pull_record(&self, image_ref: &str) {
        let mut stored = lock(&self.0.pull_records);
        stored.pulled.insert(file_name(image_ref), "{".to_owned());
    }

    /// The images with a record, and those whose pull has not ended as far as the disk says.
    pub fn pull_records(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let stored = lock(&self.0.pull_records);
        (stored.images(), stored.intents().images)
    }
}

impl StoredPullRecords {
    fn images(&self) -> BTreeSet<String> {
        let parsed = self.pulled.values().map(|text| ImagePulledRecord::parse(text.as_bytes()));
        parsed.flatten().map(|record| record.image_ref).collect()
    }

    fn intents(&self) -> PullIntents {
        let images = self.pulling.values().filter_map(|text| parse_intent(text.as_bytes()).ok());
        PullIntents { images: images.collect(), files: self.pulling.keys().cloned().collect() }
    }

    fn read(&self, image_ref: &str) -> Result<Option<ImagePulledRecord>, FileError> {
        let name = file_name(image_ref);
        let failed = |why: String| FileError { doing: "decode", path: name.clone().into(), why };
        let text = self.pulled.get(&name);
        let record = text.map(|text| ImagePulledRecord::parse(text.as_bytes())).transpose();
        record.map_err(|error| failed(error.to_string()))
    }
}

#[async_trait]
impl PullRecords for FakeDisk {
    async fn write_intent(&self, image: &str) -> Result<bool, FileError> {
        let mut stored = lock(&self.0.pull_records);
        Ok(stored.pulling.insert(file_name(image), intent_text(image)).is_some())
    }

    async fn remove_intent(&self, image: &str) -> Result<(), FileError> {
        lock(&self.0.pull_records).pulling.remove(&file_name(image));
        Ok(())
    }

    async fn intents(&self) -> Result<PullIntents, FileError> {
        Ok(lock(&self.0.pull_records).intents())
    }

    async fn record_pulled(&self, pull: &CompletedPull) -> Result<(), FileError> {
        let mut stored = lock(&self.0.pull_records);
        let before = stored.read(&pull.image_ref).unwrap_or_default();
        if let Some(record) = ImagePulledRecord::after(before.as_ref(), pull) {
            stored.pulled.insert(file_name(&pull.image_ref), record.text());
        }
        Ok(())
    }

    async fn pulled(&self, image_ref: &str) -> Result<Option<ImagePulledRecord>, FileError> {
        lock(&self.0.pull_records).read(image_ref)
    }

    async fn recorded_images(&self) -> Result<BTreeSet<String>, FileError> {
        Ok(lock(&self.0.pull_records).images())
    }

    async fn remove_pulled(&self, image_ref: &str, listed: Timestamp) -> Result<(), FileError> {
        let mut stored = lock(&self.0.pull_records);
        if stored.read(image_ref)?.is_some_and(|record| record.is_older_than(listed)) {
            stored.pulled.remove(&file_name(image_ref));
        }
        Ok(())
    }

    async fn counts(&self) -> Result<PullRecordCounts, FileError> {
        let stored = lock(&self.0.pull_records);
        let (intents, pulled) = (stored.pulling.len() as u64, stored.pulled.len() as u64);
        Ok(PullRecordCounts { intents, pulled })
    }
}
