//! The file with the ids of a pod's user namespace, at the place and in the format of the Go kubelet.

use std::collections::BTreeMap;
use std::io;

use oarsman_core::ids::PodUid;
use oarsman_host::files::{FileContents, read_regular};

use super::PodDirectories;
use crate::error::{FileError, failed};
use crate::files::{remove_for_good, replace};

/// Only root reads it.
const OURS: u32 = 0o600;
/// A file of one range has far less.
const LONGEST: u64 = 1 << 16;

impl PodDirectories {
    /// The files of all pods that have one. One that is too long or no file has no content: no kubelet wrote it.
    pub(super) fn user_namespaces(&self) -> Result<BTreeMap<PodUid, String>, FileError> {
        let mut found = BTreeMap::new();
        for uid in self.with_directories()? {
            let path = self.paths(&uid)?.userns();
            match read_regular(&path, LONGEST) {
                Ok(FileContents::Bytes(bytes)) => {
                    found.insert(uid, String::from_utf8_lossy(&bytes).into_owned());
                }
                Ok(FileContents::TooLong | FileContents::Other(_)) => {
                    found.insert(uid, String::new());
                }
                Err(error) if is_no_file(&error) => {}
                Err(error) => return Err(failed("read", &path)(error)),
            }
        }
        Ok(found)
    }

    /// The file is there after a crash of the machine, too: its pod may run on, and no other pod may get the same ids.
    pub(super) fn write_user_namespace(&self, uid: &PodUid, text: &str) -> Result<(), FileError> {
        let path = self.paths(uid)?.userns();
        replace(&path, text.as_bytes(), OURS, true).map_err(failed("write", &path))
    }

    pub(super) fn remove_user_namespace(&self, uid: &PodUid) -> Result<(), FileError> {
        let path = self.paths(uid)?.userns();
        remove_for_good(&path).map_err(failed("remove", &path))
    }
}

fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
