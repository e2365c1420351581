//! Rotation of container logs on the fake disk: the same steps as on a real one, each of which may be the agent's last.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use oarsman_core::log_rotation::{
    COMPRESSED_SUFFIX, ContainerLogFile, LogFileState, UNFINISHED_SUFFIX, logs_to_compress,
    plan_rotation,
};
use oarsman_state::FileError;
use tokio::time::sleep;

use super::{FakeDisk, STEP};
use crate::files::FakeFiles;

impl FakeDisk {
    pub(super) fn log_state(&self, log: &ContainerLogFile) -> LogFileState {
        let found = self.0.files.read(&self.log(log));
        found.map_or(LogFileState::Missing, |content| LogFileState::Size(content.len() as u64))
    }

    pub(super) async fn rotate(
        &self,
        log: &ContainerLogFile,
        max_files: usize,
        now: Timestamp,
    ) -> Result<String, FileError> {
        let plan = plan_rotation(&log.file_name(), &self.names_beside(log), max_files, now);
        for name in &plan.remove {
            self.0.files.remove(&self.directory_of_log(log).join(name));
            sleep(STEP).await;
        }
        let rotated = self.directory_of_log(log).join(&plan.rotated);
        let renamed = self.0.files.rename_to_free_name(&self.log(log), &rotated);
        renamed.map_err(|error| failed("rotate the log", &rotated, &error))?;
        Ok(plan.rotated)
    }

    pub(super) fn restore(&self, log: &ContainerLogFile, rotated: &str) -> Result<(), FileError> {
        let rotated = self.directory_of_log(log).join(rotated);
        match self.0.files.rename_to_free_name(&rotated, &self.log(log)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            restored => restored.map_err(|error| failed("restore the log", &rotated, &error)),
        }
    }

    /// A compressed file has the content of the plain one, as of the moment when it was read.
    pub(super) async fn compress(&self, log: &ContainerLogFile) -> Result<(), FileError> {
        let directory = self.directory_of_log(log);
        for name in logs_to_compress(&log.file_name(), &self.names_beside(log)) {
            let files = &self.0.files;
            let plain = directory.join(&name);
            let unfinished = directory.join(format!("{name}{UNFINISHED_SUFFIX}"));
            let content = files.read(&plain).map_err(|e| failed("compress the log", &plain, &e))?;
            let written = files.write(&unfinished, &content);
            written.map_err(|e| failed("compress the log", &unfinished, &e))?;
            sleep(STEP).await;
            let compressed = directory.join(format!("{name}{COMPRESSED_SUFFIX}"));
            let renamed = files.rename(&unfinished, &compressed);
            renamed.map_err(|error| failed("compress the log", &compressed, &error))?;
            sleep(STEP).await;
            files.remove(&plain);
        }
        Ok(())
    }

    fn directory_of_log(&self, log: &ContainerLogFile) -> PathBuf {
        self.0.pod_logs.join(log.directory())
    }

    fn log(&self, log: &ContainerLogFile) -> PathBuf {
        self.directory_of_log(log).join(log.file_name())
    }

    fn names_beside(&self, log: &ContainerLogFile) -> Vec<String> {
        let files = self.0.files.below(&self.directory_of_log(log));
        let names = files.iter().filter_map(|file| file.file_name()?.to_str());
        names.map(str::to_owned).collect()
    }
}

/// What was rotated away from a log.
pub(super) fn rotated_of(files: &FakeFiles, log: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(name)) = (log.parent(), log.file_name()) else { return Vec::new() };
    let prefix = format!("{}.", name.to_string_lossy());
    let mut found = files.below(directory);
    found.retain(|file| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
    });
    found
}

fn failed(doing: &'static str, path: &Path, error: &io::Error) -> FileError {
    FileError { doing, path: path.to_owned(), why: error.to_string() }
}
