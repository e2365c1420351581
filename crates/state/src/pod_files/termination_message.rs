//! What a container wrote before it ended: into its own file, or failing that into its log.

use std::path::Path;

use oarsman_core::ids::PodUid;
use oarsman_core::termination_message::{self, FILE_LIMIT};
use oarsman_core::view::ContainerView;
use oarsman_host::beneath::RootDirectory;

use super::PodDirectories;
use crate::error::{FileError, failed};
use crate::files::{tail, unless_gone};

/// Log lines carry stamps and may be long; of this much the last ones are taken.
const LOG_BYTES: u64 = 256 * 1024;

impl PodDirectories {
    pub(super) fn read_termination_message(
        &self,
        uid: &PodUid,
        container: &ContainerView,
    ) -> Result<String, FileError> {
        let written = match &container.message_file {
            // Only a file that we made: whatever else is mounted there is none of our business.
            Some(file) if self.is_ours(uid, container, file)? => {
                let below = file.strip_prefix(&self.settings.root).unwrap_or(file);
                let root = RootDirectory::open(&self.settings.root);
                let bytes = root.and_then(|root| tail(&root, below, FILE_LIMIT as u64));
                let bytes = unless_gone(bytes);
                termination_message::from_file(&bytes.map_err(failed("read", file))?)
            }
            Some(_) | None => String::new(),
        };
        let exit = container.state.exit();
        if exit.is_some_and(|exit| termination_message::needs_log(&container.label, exit, &written))
        {
            return self.read_end_of_log(uid, container);
        }
        Ok(written)
    }

    fn is_ours(
        &self,
        uid: &PodUid,
        container: &ContainerView,
        file: &Path,
    ) -> Result<bool, FileError> {
        Ok(file.parent() == Some(self.paths(uid)?.container(&container.name).as_path()))
    }

    fn read_end_of_log(
        &self,
        uid: &PodUid,
        container: &ContainerView,
    ) -> Result<String, FileError> {
        let bytes = self.logs.end_of(uid, container, LOG_BYTES)?;
        Ok(termination_message::from_log(&bytes))
    }
}
