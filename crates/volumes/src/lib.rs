//! The volumes of pods: made before the first container is, kept up to date, given back when nothing of the pod runs.
//!
//! Only what some container mounts is made. Everything may be repeated, and nothing that is mounted is ever removed as if it
//! were a directory.

mod atomic_writer;
mod empty_dir;
mod host_path;
mod ownership;
mod payload;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Volume};
use oarsman_core::config::{Payloads, PodPaths};
use oarsman_core::pod::PodExt;
use oarsman_host::{mounts, tree};
use rustix::mount::{UnmountFlags, unmount};

/// Why a volume is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// The system did not do it.
    #[error("volume {volume:?}: cannot {doing} {}: {source}", path.display())]
    System {
        /// The volume, or its directory.
        volume: String,
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is there is not what the volume's type asks for.
    #[error("volume {volume:?}: hostPath type check failed: {} is not a {wanted}", path.display())]
    WrongType {
        /// The volume.
        volume: String,
        /// What was found to be something else.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
    },
    /// There is nothing where something should be.
    #[error("volume {volume:?}: hostPath type check failed: {} does not exist, and should be a {wanted}", path.display())]
    Missing {
        /// The volume.
        volume: String,
        /// Where nothing was found.
        path: PathBuf,
        /// What should be there.
        wanted: &'static str,
    },
    /// A file of the volume would lie outside of it, or where the volume keeps its own things.
    #[error("volume {volume:?}: no file can be called {path:?} in it")]
    Path {
        /// The volume.
        volume: String,
        /// The path of the file.
        path: String,
    },
    /// The volume is of a kind that nobody here can make.
    #[error(
        "volume {volume:?}: this agent has no {kind} volumes; use emptyDir, hostPath, configMap, secret, downwardAPI or projected"
    )]
    Unknown {
        /// The volume.
        volume: String,
        /// Its kind, as the field of the spec is called.
        kind: String,
    },
    /// What is left of volumes could not be removed.
    #[error(transparent)]
    Remove(#[from] tree::RemoveTreeError),
}

/// Makes every volume that a container of the pod mounts, and has those that are made of objects and fields hold these files. One
/// without files in `payloads` stays as it is, since nobody knows just now what should be in it.
///
/// # Errors
/// With the first that could not be made; the others are as they were.
pub fn set_up(
    pod: &Pod,
    paths: &PodPaths,
    payloads: &Payloads,
    now: Timestamp,
) -> Result<(), VolumeError> {
    let used = pod.mounted_volumes();
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes.iter().filter(|volume| used.contains(&volume.name)).try_for_each(
        |volume| match volume {
            Volume { empty_dir: Some(source), .. } => {
                let path = paths.volume(empty_dir::PLUGIN, &volume.name);
                empty_dir::set_up(pod, &volume.name, source, &path)
            }
            Volume { host_path: Some(source), .. } => host_path::check(&volume.name, source),
            Volume { config_map: Some(_), .. }
            | Volume { secret: Some(_), .. }
            | Volume { downward_api: Some(_), .. }
            | Volume { projected: Some(_), .. } => {
                let files = payloads.get(&volume.name);
                files.map_or(Ok(()), |files| payload::set_up(pod, volume, files, paths, now))
            }
            other => Err(VolumeError::Unknown { volume: other.name.clone(), kind: kind(other) }),
        },
    )
}

/// Gives back what a pod's volumes hold: what is mounted is unmounted, what is on disk is removed.
///
/// # Errors
/// When something is still in use; what could be given back is.
pub fn tear_down(paths: &PodPaths) -> Result<(), VolumeError> {
    let directory = paths.volumes();
    let system = |doing, path: &Path| {
        let (volume, path) = (directory.display().to_string(), path.to_owned());
        move |source| VolumeError::System { volume, doing, path, source }
    };
    let all = mounts::current().map_err(system("read the mounts below", &directory))?;
    // The last mounted may lie upon one mounted before.
    let below: Vec<_> = mounts::beneath(&all, &directory).collect();
    for mount in below.into_iter().rev() {
        let flags = UnmountFlags::NOFOLLOW;
        unmount(&mount.point, flags)
            .map_err(|error| system("unmount", &mount.point)(error.into()))?;
    }
    Ok(tree::remove_tree(&directory)?)
}

/// What a volume's spec calls its kind.
fn kind(volume: &Volume) -> String {
    let fields = serde_json::to_value(volume).unwrap_or_default();
    let names = fields.as_object().into_iter().flat_map(|fields| fields.keys());
    names.into_iter().find(|name| *name != "name").cloned().unwrap_or_default()
}

/// Makes a directory where there is none.
fn make_directory(path: &Path, mode: u32) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    if path.is_dir() {
        return Ok(false);
    }
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(true)
}
