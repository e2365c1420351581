//! What is remembered of pods that no API server remembers: their last status, one file each.

use std::fs;
use std::io;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::ids::PodUid;

use super::Plot;
use crate::files::{failed, names_in, replace, unless_gone};
use crate::seams::DiskError;

const SUFFIX: &str = ".json";
const OURS: u32 = 0o600;

impl Plot {
    /// Apart from the pods' directories, which a Go kubelet on the same root may clear away.
    pub(super) fn records_directory(&self) -> PathBuf {
        self.settings.root.join("oarsman-statuses")
    }

    fn record_of(&self, uid: &PodUid) -> Result<PathBuf, DiskError> {
        // The same check as for directories: a UID becomes part of a path.
        self.paths(uid)?;
        Ok(self.records_directory().join(format!("{uid}{SUFFIX}")))
    }

    pub(super) fn record(
        &self,
        uid: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), DiskError> {
        let path = self.record_of(uid)?;
        let text = serde_json::to_vec(status).map_err(failed("write", &path))?;
        replace(&path, &text, OURS, lasting).map_err(failed("write", &path))
    }

    /// What was recorded. A record that cannot be understood is set aside and told of: to stop for it would keep the pod from
    /// ever running again.
    pub(super) fn read_record(&self, uid: &PodUid) -> Result<Option<PodStatus>, DiskError> {
        let path = self.record_of(uid)?;
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        match serde_json::from_slice(&text) {
            Ok(status) => Ok(Some(status)),
            Err(error) => {
                let aside = path.with_extension("broken");
                tracing::error!(record = %path.display(), aside = %aside.display(), %error,
                    "the record of a pod's last status is broken: set aside, the pod starts anew");
                fs::rename(&path, &aside).map_err(failed("set aside", &path))?;
                Ok(None)
            }
        }
    }

    /// Pods that have a record.
    pub(super) fn with_records(&self) -> Result<impl Iterator<Item = PodUid>, DiskError> {
        let names = names_in(&self.records_directory())?;
        let uid = |name: String| name.strip_suffix(SUFFIX).map(PodUid::from);
        Ok(names.into_iter().filter_map(uid))
    }

    pub(super) fn forget(&self, uid: &PodUid) -> Result<(), DiskError> {
        let path = self.record_of(uid)?;
        unless_gone(fs::remove_file(&path)).map_err(failed("remove", &path))?;
        let aside = path.with_extension("broken");
        unless_gone(fs::remove_file(&aside)).map_err(failed("remove", &aside))
    }
}
