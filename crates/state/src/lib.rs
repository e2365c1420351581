//! Files and records of pods below the root directory.
//!
//! Four seams, each with the machine's own files behind it: [`PodFiles`] (directories, files for containers, logs), [`StatusRecords`]
//! (statuses that no API server remembers), [`PullRecords`] (with whose credentials images were pulled) and [`CheckpointStore`] (what
//! brings the cluster's pods back without an API server).

mod checkpoints;
#[cfg(test)]
mod crash_tests;
mod error;
mod files;
mod pod_files;
#[cfg(test)]
mod pull_record_crash_tests;
mod pull_records;
mod records;

pub use checkpoints::{
    CheckpointKeys, CheckpointStore, CheckpointStoreLayer, EncryptedCheckpoints,
};
pub use error::FileError;
pub use pod_files::{
    ContainerFiles, FoundFiles, HostPodFiles, PodFileSettings, PodFiles, PodFilesLayer,
};
pub use pull_records::{PullRecordFiles, PullRecords, PullRecordsLayer};
pub use records::{StatusFiles, StatusRecords, StatusRecordsLayer};
