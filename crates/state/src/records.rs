//! The seam to what must survive a restart: the last status of pods that no API server remembers, one file each.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::ids::PodUid;
use oarsman_host::blocking::{BlockingKind, BlockingPool};
use oarsman_seam::seam;

use crate::error::{FileError, failed};
use crate::files::{
    OUR_DIRECTORY, make_directory, names_in, paths, remove_unfinished, replace, unless_gone,
};

const SUFFIX: &str = ".json";
const OURS: u32 = 0o600;

/// The statuses of pods that no API server remembers.
#[seam]
pub trait StatusRecords: Send + Sync + 'static {
    /// Records a pod's status; it survives a restart of the agent, and when `lasting` a crash of the machine.
    #[seam(call = "remember the status of", object = pod)]
    async fn write_status(
        &self,
        pod: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), FileError>;

    /// The status that was recorded last.
    #[seam(call = "recall the status of", object = pod)]
    async fn read_status(&self, pod: &PodUid) -> Result<Option<PodStatus>, FileError>;

    /// Removes the record of a pod, if there is one.
    #[seam(call = "remove the record of", object = pod)]
    async fn remove(&self, pod: &PodUid) -> Result<(), FileError>;

    /// Every pod that has a record.
    #[seam(call = "list the records of pods")]
    async fn pods(&self) -> Result<BTreeSet<PodUid>, FileError>;
}

/// Records as files below the root directory.
#[derive(Clone, Debug)]
pub struct StatusFiles(Arc<StatusDirectory>);

impl StatusFiles {
    /// Those below this root directory.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(root: &Path) -> Result<Self, FileError> {
        let statuses = StatusDirectory {
            root: root.to_owned(),
            pool: BlockingPool::new(BlockingKind::StatusRecords),
        };
        make_directory(&statuses.directory(), OUR_DIRECTORY)?;
        remove_unfinished(&statuses.directory())?;
        Ok(Self(Arc::new(statuses)))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        object: &str,
        work: impl FnOnce(&StatusDirectory) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let statuses = Arc::clone(&self.0);
        self.0
            .pool
            .run(object, move || work(&statuses), failed("work in", &self.0.directory()))
            .await
    }
}

#[async_trait]
impl StatusRecords for StatusFiles {
    async fn write_status(
        &self,
        pod: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), FileError> {
        let (uid, status) = (pod.clone(), status.clone());
        self.blocking(pod.as_str(), move |statuses| statuses.write(&uid, &status, lasting)).await
    }

    async fn read_status(&self, pod: &PodUid) -> Result<Option<PodStatus>, FileError> {
        let uid = pod.clone();
        self.blocking(pod.as_str(), move |statuses| statuses.read(&uid)).await
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), FileError> {
        let uid = pod.clone();
        self.blocking(pod.as_str(), move |statuses| statuses.remove(&uid)).await
    }

    async fn pods(&self) -> Result<BTreeSet<PodUid>, FileError> {
        self.blocking("", StatusDirectory::pods).await
    }
}

#[derive(Debug)]
struct StatusDirectory {
    root: PathBuf,
    pool: BlockingPool,
}

impl StatusDirectory {
    /// Apart from the pods' directories, which a Go kubelet on the same root may clear away.
    fn directory(&self) -> PathBuf {
        self.root.join("oarsman-statuses")
    }

    fn path(&self, uid: &PodUid) -> Result<PathBuf, FileError> {
        // The same check as for directories: a UID becomes part of a path.
        paths(&self.root, uid)?;
        Ok(self.directory().join(format!("{uid}{SUFFIX}")))
    }

    fn write(&self, uid: &PodUid, status: &PodStatus, lasting: bool) -> Result<(), FileError> {
        let path = self.path(uid)?;
        let text = serde_json::to_vec(status).map_err(failed("write", &path))?;
        replace(&path, &text, OURS, lasting).map_err(failed("write", &path))
    }

    /// What was recorded. A record that cannot be parsed is set aside and logged: an error would keep the pod from
    /// ever running again.
    fn read(&self, uid: &PodUid) -> Result<Option<PodStatus>, FileError> {
        let path = self.path(uid)?;
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        match serde_json::from_slice(&text) {
            Ok(status) => Ok(Some(status)),
            Err(error) => {
                let aside = path.with_extension("broken");
                tracing::error!(
                    %uid,
                    path = %path.display(),
                    %error,
                    "status record not decoded, renamed to .broken"
                );
                fs::rename(&path, &aside).map_err(failed("set aside", &path))?;
                Ok(None)
            }
        }
    }

    /// Pods that have a record.
    fn pods(&self) -> Result<BTreeSet<PodUid>, FileError> {
        let names = names_in(&self.directory())?;
        let uid = |name: String| name.strip_suffix(SUFFIX).map(PodUid::from);
        Ok(names.into_iter().filter_map(uid).collect())
    }

    fn remove(&self, uid: &PodUid) -> Result<(), FileError> {
        let path = self.path(uid)?;
        unless_gone(fs::remove_file(&path)).map_err(failed("remove", &path))?;
        let aside = path.with_extension("broken");
        unless_gone(fs::remove_file(&aside)).map_err(failed("remove", &aside))
    }
}
