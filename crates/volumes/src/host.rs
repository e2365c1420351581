//! The volumes of this machine, below the root directory of the agent.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use oarsman_clock::Clock;
use oarsman_core::cri_spec::PodPaths;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::volume_manager::{MountedVolume, VolumeToMount};
use oarsman_host::blocking::{BlockingKind, BlockingLane};
use oarsman_host::files::is_plain_name;

use crate::host_path::HostPathPlugin;
use crate::plugin::{self, VolumePlugin, VolumeToSetUp};
use crate::{VolumeError, Volumes};

/// The volumes of this machine.
#[derive(Clone)]
pub struct HostVolumes(Arc<VolumePlugins>);

struct VolumePlugins {
    root: PathBuf,
    clock: Arc<dyn Clock>,
    all: Vec<Box<dyn VolumePlugin>>,
    lane: BlockingLane,
    /// One that hangs must not hold up what lies on our own disk.
    host_path_lane: BlockingLane,
}

impl HostVolumes {
    /// Those below this root directory. Directories of files that are replaced all at once are named after the time.
    pub fn new(root: PathBuf, clock: Arc<dyn Clock>) -> Self {
        let lane = BlockingLane::new(BlockingKind::Volumes);
        let host_path_lane = BlockingLane::new(BlockingKind::HostPaths);
        Self(Arc::new(VolumePlugins { root, clock, all: plugin::all(), lane, host_path_lane }))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        lane: &BlockingLane,
        object: &str,
        work: impl FnOnce(&VolumePlugins) -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let plugins = Arc::clone(&self.0);
        lane.run(object, move || work(&plugins), panicked(&self.0.root)).await
    }
}

#[async_trait]
impl Volumes for HostVolumes {
    async fn set_up(&self, pod: &Arc<Pod>, volumes: Vec<VolumeToMount>) -> Result<(), VolumeError> {
        let pod = Arc::clone(pod);
        let object = object(&pod.uid(), "set up", volumes.iter().map(|volume| &volume.name));
        let is_host_path = volumes.iter().any(|volume| volume.plugin == HostPathPlugin.name());
        let lane = if is_host_path { &self.0.host_path_lane } else { &self.0.lane };
        self.blocking(lane, &object, move |plugins| {
            plugins.set_up(&pod, &volumes, plugins.clock.wall())
        })
        .await
    }

    async fn tear_down(
        &self,
        pod: &PodUid,
        volumes: Vec<MountedVolume>,
    ) -> Result<(), VolumeError> {
        let uid = pod.clone();
        let object = object(pod, "tear down", volumes.iter().map(|volume| &volume.name));
        self.blocking(&self.0.lane, &object, move |plugins| plugins.tear_down(&uid, &volumes)).await
    }

    async fn mounted(&self, pod: &PodUid) -> Result<Vec<MountedVolume>, VolumeError> {
        let uid = pod.clone();
        let object = object(pod, "list", [].into_iter());
        self.blocking(&self.0.lane, &object, move |plugins| plugins.mounted(&uid)).await
    }
}

impl VolumePlugins {
    fn set_up(
        &self,
        pod: &Pod,
        volumes: &[VolumeToMount],
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        let paths = self.paths(&pod.uid())?;
        first_error(volumes.iter().map(|wanted| self.set_up_one(pod, wanted, &paths, now)))
    }

    fn set_up_one(
        &self,
        pod: &Pod,
        wanted: &VolumeToMount,
        paths: &PodPaths,
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        let unknown = || {
            let (volume, kind) = (wanted.name.clone(), wanted.plugin.clone());
            VolumeError::Unknown { volume, kind }
        };
        let plugin = self.all.iter().find(|plugin| plugin.name() == wanted.plugin);
        let mut specs = pod.spec().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
        let volume = specs.find(|volume| volume.name == wanted.name).ok_or_else(unknown)?;
        let path = paths.volume(&wanted.plugin, &wanted.name);
        let payload = wanted.payload.as_deref();
        let mount = VolumeToSetUp { pod, volume, payload, path, now };
        plugin.ok_or_else(unknown)?.set_up(&mount)
    }

    fn tear_down(&self, uid: &PodUid, volumes: &[MountedVolume]) -> Result<(), VolumeError> {
        let paths = self.paths(uid)?;
        first_error(volumes.iter().map(|MountedVolume { name, plugin, .. }| {
            plugin::tear_down(name, &paths.volume(plugin, name))
        }))
    }

    fn mounted(&self, uid: &PodUid) -> Result<Vec<MountedVolume>, VolumeError> {
        let directory = self.paths(uid)?.volumes();
        let mut found = Vec::new();
        for plugin in names_in(&directory)? {
            let volumes = names_in(&directory.join(&plugin))?.into_iter();
            found.extend(volumes.map(|name| MountedVolume::found(name, plugin.replace('~', "/"))));
        }
        Ok(found)
    }

    /// A UID may be given in a manifest: one that is no plain name could lead anywhere.
    fn paths(&self, uid: &PodUid) -> Result<PodPaths, VolumeError> {
        match is_plain_name(uid.as_str()) {
            true => Ok(PodPaths::new(&self.root, uid)),
            false => Err(VolumeError::Uid { uid: uid.to_string() }),
        }
    }
}

/// What one call at a time is for: a volume that hangs holds up neither the pod's others nor what else is done to the pod.
fn object<'a>(pod: &PodUid, doing: &str, volumes: impl Iterator<Item = &'a String>) -> String {
    volumes.fold(format!("{pod} {doing}"), |object, volume| object + " " + volume)
}

/// Does all of it, and gives the first error.
fn first_error(results: impl Iterator<Item = Result<(), VolumeError>>) -> Result<(), VolumeError> {
    results.fold(Ok(()), Result::and)
}

/// The names in a directory; none when there is no such directory.
fn names_in(directory: &Path) -> Result<Vec<String>, VolumeError> {
    let entries = match fs::read_dir(directory) {
        // A stray file holds no volumes: it goes with the pod's directory.
        Err(error) if is_no_directory(&error) => return Ok(Vec::new()),
        entries => entries.map_err(system("list", directory))?,
    };
    let name = |entry: io::Result<fs::DirEntry>| {
        Ok::<_, io::Error>(entry?.file_name().to_string_lossy().into_owned())
    };
    let mut names: Vec<String> =
        entries.map(name).collect::<io::Result<_>>().map_err(system("list", directory))?;
    names.sort();
    Ok(names)
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn panicked<E: Display>(root: &Path) -> impl FnOnce(E) -> VolumeError {
    let object = root.display().to_string();
    move |error| VolumeError::Call { doing: "work in", object, why: error.to_string() }
}

fn system(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> VolumeError {
    let (volume, path) = (path.display().to_string(), path.to_owned());
    move |source| VolumeError::System { volume, doing, path, source }
}
