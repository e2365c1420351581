//! Volumes made of objects and fields: a directory whose files are replaced all at once.

use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod, Volume};
use oarsman_core::config::{Payload, PodPaths};

use crate::atomic_writer::{self, Writing};
use crate::{VolumeError, empty_dir, ownership};

/// Makes the directory, unless that is done, and has it hold these files.
pub(crate) fn set_up(
    pod: &Pod,
    volume: &Volume,
    files: &Payload,
    paths: &PodPaths,
    now: Timestamp,
) -> Result<(), VolumeError> {
    let known = paths.known_volumes(pod);
    let Some(place) = known.get(&volume.name) else { return Ok(()) };
    // What is secret never gets to a disk; a ConfigMap is not.
    let medium = volume.config_map.is_none().then(|| "Memory".to_owned());
    let source = EmptyDirVolumeSource { medium, size_limit: None };
    empty_dir::set_up(pod, &volume.name, &source, &place.path)?;
    check_paths(&volume.name, files)?;
    let failed = |path: &Path| {
        let (volume, path) = (volume.name.clone(), path.to_owned());
        move |source| VolumeError::System { volume, doing: "write the files of", path, source }
    };
    let group = ownership::group(pod).map_err(failed(&place.path))?;
    let writing = Writing { directory: &place.path, group, now };
    atomic_writer::write(&writing, files).map_err(failed(&place.path))
}

/// Paths were checked with the pod; keys of an object that somebody else made were not.
fn check_paths(volume: &str, files: &Payload) -> Result<(), VolumeError> {
    let is_good = |path: &str| {
        let good_part = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= 255;
        path.len() <= 4096 && !path.starts_with("..") && path.split('/').all(good_part)
    };
    match files.keys().find(|path| !is_good(path)) {
        None => Ok(()),
        Some(path) => Err(VolumeError::Path { volume: volume.to_owned(), path: path.clone() }),
    }
}
