//! What a container wrote before it ended: into its own file, or failing that into its log.

use std::path::Path;

use oarsman_core::ids::PodUid;
use oarsman_core::termination_message::{self, FILE_LIMIT};
use oarsman_core::view::ContainerView;

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
                let bytes = unless_gone(tail(&self.settings.root, below, FILE_LIMIT as u64));
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
        let Some(name) = self.log_directory_of(uid)? else { return Ok(String::new()) };
        let log = Path::new(&name).join(Self::log_of(container));
        let bytes = unless_gone(tail(&self.settings.pod_logs, &log, LOG_BYTES));
        let bytes = bytes.map_err(failed("read", &log))?;
        Ok(termination_message::from_log(&bytes))
    }
}
