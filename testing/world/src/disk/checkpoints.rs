//! The seam to checkpoints of the cluster's pods, on the fake disk.

use std::collections::BTreeMap;

use async_trait::async_trait;
use oarsman_state::{CheckpointStore, FileError};

use super::FakeDisk;
use crate::lock;

/// A checkpoint as a reader sees it, and as it is after a crash of the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredCheckpoint {
    written: Vec<u8>,
    synced: Option<Vec<u8>>,
}

#[async_trait]
impl CheckpointStore for FakeDisk {
    async fn write(&self, name: &str, content: Vec<u8>, lasting: bool) -> Result<(), FileError> {
        let mut stored = lock(&self.0.checkpoints);
        let checkpoint = stored.entry(name.to_owned()).or_default();
        if lasting {
            checkpoint.synced = Some(content.clone());
        }
        checkpoint.written = content;
        Ok(())
    }

    async fn read_all(&self) -> Result<BTreeMap<String, Vec<u8>>, FileError> {
        let stored = lock(&self.0.checkpoints);
        Ok(stored
            .iter()
            .map(|(name, checkpoint)| (name.clone(), checkpoint.written.clone()))
            .collect())
    }

    async fn remove(&self, name: &str) -> Result<(), FileError> {
        lock(&self.0.checkpoints).remove(name);
        Ok(())
    }
}

impl FakeDisk {
    pub(super) fn lose_unsynced_checkpoints(&self) {
        let mut stored = lock(&self.0.checkpoints);
        stored.retain(|_, checkpoint| checkpoint.synced.is_some());
        for checkpoint in stored.values_mut() {
            checkpoint.written = checkpoint.synced.clone().unwrap_or_default();
        }
    }
}
