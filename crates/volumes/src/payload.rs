//! Volumes made of objects and fields: a directory whose files are replaced all at once.

use k8s_openapi::api::core::v1::EmptyDirVolumeSource;
use oarsman_core::cri_spec::Payload;

use crate::atomic_writer::{self, AtomicWriter};
use crate::plugin::{VolumePlugin, VolumeToSetUp};
use crate::{VolumeError, empty_dir, ownership};

/// `configMap`, `secret`, `projected` and `downwardAPI` volumes.
pub(crate) struct PayloadPlugin {
    pub(crate) plugin: &'static str,
    pub(crate) in_memory: bool,
}

impl VolumePlugin for PayloadPlugin {
    fn name(&self) -> &'static str {
        self.plugin
    }

    /// Makes the directory, unless that is done, and has it hold its files; without any known it stays as it is.
    fn set_up(&self, mount: &VolumeToSetUp<'_>) -> Result<(), VolumeError> {
        let Some(files) = mount.payload else { return Ok(()) };
        let (volume, path) = (&mount.volume.name, &mount.path);
        let medium = self.in_memory.then(|| "Memory".to_owned());
        let source = EmptyDirVolumeSource { medium, size_limit: None };
        check_paths(volume, files)?;
        empty_dir::set_up(mount, &source)?;
        let failed = |source| {
            let (volume, path) = (volume.clone(), path.clone());
            VolumeError::System { volume, doing: "write the files of", path, source }
        };
        let group = ownership::fs_group(mount.pod).map_err(failed)?;
        let writer = AtomicWriter { directory: path, group, now: mount.now };
        atomic_writer::write(&writer, files).map_err(failed)
    }
}

/// Paths of the pod were validated with it; keys of ConfigMaps and Secrets were not.
fn check_paths(volume: &str, files: &Payload) -> Result<(), VolumeError> {
    let is_good = |path: &str| {
        let good_part = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= 255;
        path.len() <= 4096 && !path.starts_with("..") && path.split('/').all(good_part)
    };
    match files.keys().find(|path| !is_good(path)) {
        None => check_conflicts(volume, files),
        Some(path) => Err(VolumeError::Path { volume: volume.to_owned(), path: path.clone() }),
    }
}

/// No path may be a file and a directory. The API server checks that for some kinds of volumes only.
fn check_conflicts(volume: &str, files: &Payload) -> Result<(), VolumeError> {
    for file in files.keys() {
        let directory = format!("{file}/");
        let first = files.range(directory.clone()..).next();
        if let Some((below, _)) = first.filter(|(path, _)| path.starts_with(&directory)) {
            let (volume, file, below) = (volume.to_owned(), file.clone(), below.clone());
            return Err(VolumeError::PathConflict { volume, file, below });
        }
    }
    Ok(())
}
