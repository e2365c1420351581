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
use oarsman_core::cri_spec::{EnvFile, PodPaths, PropagatedMount, SubPathToMount};
use oarsman_core::disk_usage::{DiskUsage, EmptyDirUsage, empty_dirs, size_limit};
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::volume_manager::{MountedVolume, VolumeToMount, is_local};
use oarsman_host::blocking::{BlockingKind, BlockingPool};
use oarsman_host::disk_usage;
use oarsman_host::files::is_plain_name;
use oarsman_host::mounts;
use oarsman_host::tree::{self, RemoveTreeError};

use crate::empty_dir::EmptyDirPlugin;
use crate::host_path::HostPathPlugin;
use crate::plugin::{self, VolumePlugin, VolumeToSetUp};
use crate::storage_medium::StorageMedium;
use crate::{VolumeError, Volumes, env_file, propagation, sub_path};

/// The volumes of this machine.
#[derive(Clone)]
pub struct HostVolumes(Arc<VolumePlugins>);

struct VolumePlugins {
    root: PathBuf,
    clock: Arc<dyn Clock>,
    allocatable_memory: Option<u64>,
    all: Vec<Box<dyn VolumePlugin>>,
    pool: BlockingPool,
    /// One that hangs must not hold up what lies on our own disk. In either pool, there is one call at a time for a pod: a late one
    /// must not undo what a newer one has done, and a pod with many hanging volumes holds one thread.
    host_path_pool: BlockingPool,
    /// Counting takes long where there are many files, and holds up nothing else.
    usage_pool: BlockingPool,
}

impl HostVolumes {
    /// Those below this root directory. Directories of files that are replaced all at once are named after the time.
    pub fn new(root: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self::on_node(root, clock, None)
    }

    /// The same on a node that has so many bytes of memory for pods; no volume in memory is larger.
    pub fn on_node(root: PathBuf, clock: Arc<dyn Clock>, allocatable_memory: Option<u64>) -> Self {
        let pool = BlockingPool::new(BlockingKind::Volumes);
        let host_path_pool = BlockingPool::new(BlockingKind::HostPaths);
        let all = plugin::all();
        let usage_pool = BlockingPool::new(BlockingKind::VolumeUsage);
        Self(Arc::new(VolumePlugins {
            root,
            clock,
            allocatable_memory,
            all,
            pool,
            host_path_pool,
            usage_pool,
        }))
    }

    /// What a volume holds. One that is a file system of its own has it counted by the kernel.
    async fn usage_of(
        &self,
        uid: &PodUid,
        path: PathBuf,
        is_on_disk: bool,
    ) -> io::Result<DiskUsage> {
        let pool = &self.0.usage_pool;
        if is_on_disk {
            return pool.count_usage(uid.as_str(), path).await;
        }
        let of_file_system = move || match mounts::is_mount_point(&path)? {
            true => disk_usage::of_file_system(&path),
            false => Ok(DiskUsage::default()),
        };
        pool.run(uid.as_str(), of_file_system, io::Error::other).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        pool: &BlockingPool,
        object: &str,
        work: impl FnOnce(&VolumePlugins) -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let plugins = Arc::clone(&self.0);
        pool.run(object, move || work(&plugins), panicked(&self.0.root)).await
    }
}

#[async_trait]
impl Volumes for HostVolumes {
    async fn set_up(&self, pod: &Arc<Pod>, volumes: Vec<VolumeToMount>) -> Result<(), VolumeError> {
        let pod = Arc::clone(pod);
        let uid = pod.uid();
        let is_local = volumes.iter().all(|volume| is_local(&volume.plugin));
        let pool = if is_local { &self.0.pool } else { &self.0.host_path_pool };
        self.blocking(pool, uid.as_str(), move |plugins| {
            plugins.set_up(&pod, &volumes, plugins.clock.wall())
        })
        .await
    }

    async fn tear_down(
        &self,
        pod: &PodUid,
        volumes: Vec<MountedVolume>,
    ) -> Result<(), VolumeError> {
        // Of a volume of the host nothing is touched. Others that are not ours are left of a Go kubelet, and their servers may be gone.
        let is_safe = |volume: &MountedVolume| {
            is_local(&volume.plugin) || volume.plugin == HostPathPlugin.name()
        };
        let (pool, object) = match volumes.iter().all(is_safe) {
            true => (&self.0.pool, pod.to_string()),
            false => (&self.0.host_path_pool, format!("{pod} tear down")),
        };
        // Between two parts of a large volume, others have their turn.
        loop {
            let (uid, volumes) = (pod.clone(), volumes.clone());
            let work = move |plugins: &VolumePlugins| plugins.tear_down(&uid, &volumes);
            match self.blocking(pool, &object, work).await {
                Err(VolumeError::Remove(RemoveTreeError::Unfinished { .. })) => {}
                done => return done,
            }
        }
    }

    async fn set_up_sub_paths(
        &self,
        pod: &PodUid,
        sub_paths: Vec<SubPathToMount>,
    ) -> Result<(), VolumeError> {
        let is_local = sub_paths.iter().all(|part| is_local(&part.plugin));
        let pool = if is_local { &self.0.pool } else { &self.0.host_path_pool };
        let uid = pod.clone();
        self.blocking(pool, pod.as_str(), move |plugins| {
            let paths = plugins.paths(&uid)?;
            first_error(sub_paths.iter().map(|part| sub_path::set_up(&paths, part)))
        })
        .await
    }

    async fn tear_down_sub_paths(&self, pod: &PodUid) -> Result<(), VolumeError> {
        let uid = pod.clone();
        let work = move |plugins: &VolumePlugins| plugins.tear_down_sub_paths(&uid);
        self.blocking(&self.0.pool, pod.as_str(), work).await
    }

    async fn read_env_file(
        &self,
        pod: &PodUid,
        file: &EnvFile,
    ) -> Result<Option<String>, VolumeError> {
        let (uid, file) = (pod.clone(), file.clone());
        self.blocking(&self.0.pool, pod.as_str(), move |plugins| {
            let paths = plugins.paths(&uid)?;
            let volume = VolumePlugins::path(&paths, &file.plugin, &file.volume)?;
            env_file::read(&volume, &file)
        })
        .await
    }

    async fn empty_dir_usage(&self, pod: &Arc<Pod>) -> Result<Vec<EmptyDirUsage>, VolumeError> {
        let (uid, mut all) = (pod.uid(), Vec::new());
        let paths = self.0.paths(&uid)?;
        for (volume, source) in empty_dirs(pod) {
            let path = VolumePlugins::path(&paths, EmptyDirPlugin.name(), volume)?;
            let medium = source.medium.as_deref().unwrap_or_default();
            let is_on_disk = StorageMedium::parse(medium) == Some(StorageMedium::Default);
            let counted = self.usage_of(&uid, path.clone(), is_on_disk).await;
            let failed = |source| {
                let volume = volume.to_owned();
                VolumeError::System { volume, doing: "count", path, source }
            };
            let (usage, size_limit) = (counted.map_err(failed)?, size_limit(source));
            all.push(EmptyDirUsage { volume: volume.to_owned(), usage, size_limit, is_on_disk });
        }
        Ok(all)
    }

    async fn check_propagation(&self, mounts: Vec<PropagatedMount>) -> Result<(), VolumeError> {
        // A path of the host may lie on a mount of a server that is gone.
        let object = mounts.iter().map(|mount| mount.host_path.display().to_string());
        let object = object.collect::<Vec<_>>().join(" ");
        let work = move |_: &VolumePlugins| propagation::check(&mounts);
        self.blocking(&self.0.host_path_pool, &object, work).await
    }

    async fn mounted(&self, pod: &PodUid) -> Result<Vec<MountedVolume>, VolumeError> {
        let uid = pod.clone();
        self.blocking(&self.0.pool, pod.as_str(), move |plugins| plugins.mounted(&uid)).await
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
        let path = Self::path(paths, &wanted.plugin, &wanted.directory_name())?;
        let (payload, claimed) = (wanted.payload.as_deref(), wanted.claimed.as_deref());
        let allocatable_memory = self.allocatable_memory;
        let mount = VolumeToSetUp { pod, volume, payload, claimed, path, now, allocatable_memory };
        plugin.ok_or_else(unknown)?.set_up(&mount)
    }

    fn tear_down(&self, uid: &PodUid, volumes: &[MountedVolume]) -> Result<(), VolumeError> {
        let paths = self.paths(uid)?;
        first_error(volumes.iter().map(|MountedVolume { name, plugin, .. }| {
            plugin::tear_down(plugin, name, &Self::path(&paths, plugin, name)?)
        }))
    }

    /// What is mounted is found in the table of mounts, so that nothing is asked of a volume whose server is gone.
    fn tear_down_sub_paths(&self, uid: &PodUid) -> Result<(), VolumeError> {
        let directory = self.paths(uid)?.subpaths();
        let volumes = names_in(&directory)?;
        // Directories of mount points are ours, whatever plugin their volume is of.
        let torn_down = |volume: &String| plugin::tear_down("", volume, &directory.join(volume));
        first_error(volumes.iter().map(torn_down))?;
        Ok(tree::remove_tree(&directory)?)
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

    /// The path of a volume. Names are validated by the API server; one that is none could lead anywhere.
    fn path(paths: &PodPaths, plugin: &str, name: &str) -> Result<PathBuf, VolumeError> {
        let path = paths.volume(plugin, name);
        match is_plain_name(name) && is_plain_name(&plugin.replace('/', "~")) {
            true => Ok(path),
            false => {
                Err(VolumeError::Path { volume: name.to_owned(), path: path.display().to_string() })
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use oarsman_clock::SystemClock;
    use tokio::time::timeout;

    use super::*;

    /// Row H10 of docs/security.md.
    #[tokio::test]
    async fn while_a_call_for_a_pod_hangs_no_other_one_for_its_volumes_is_begun() {
        let root = tempfile::tempdir().unwrap();
        let volumes = HostVolumes::new(root.path().to_owned(), Arc::new(SystemClock::start()));
        let (release, released) = mpsc::channel::<()>();
        let hanging = volumes.clone();
        let hanging = tokio::spawn(async move {
            let hang = move |_: &VolumePlugins| {
                released.recv().ok();
                Ok(())
            };
            hanging.blocking(&hanging.0.pool, "u", hang).await
        });
        tokio::task::yield_now().await;
        let uid = PodUid::from("u");
        let pod = Arc::new(Pod {
            metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                uid: Some("u".to_owned()),
                ..Default::default()
            },
            ..Pod::default()
        });
        let soon = Duration::from_millis(50);
        assert!(timeout(soon, volumes.set_up(&pod, Vec::new())).await.is_err());
        assert!(timeout(soon, volumes.tear_down(&uid, Vec::new())).await.is_err());
        assert!(timeout(soon, volumes.mounted(&uid)).await.is_err());
        volumes.mounted(&PodUid::from("other")).await.unwrap();
        drop(release);
        hanging.await.unwrap().unwrap();
        volumes.tear_down(&uid, Vec::new()).await.unwrap();
    }

    /// Row H9: volumes of a Go kubelet whose servers are gone.
    #[tokio::test]
    async fn volumes_of_others_are_torn_down_in_a_lane_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let volumes = HostVolumes::new(root.path().to_owned(), Arc::new(SystemClock::start()));
        let held = volumes.turns_of_host_paths().await;
        let nfs = MountedVolume::found("data".to_owned(), "kubernetes.io/nfs".to_owned());
        let uid = PodUid::from("u");
        let soon = Duration::from_millis(50);
        assert!(timeout(soon, volumes.tear_down(&uid, vec![nfs])).await.is_err());
        let own = MountedVolume::found("cache".to_owned(), "kubernetes.io/empty-dir".to_owned());
        volumes.tear_down(&uid, vec![own]).await.unwrap();
        drop(held);
    }

    impl HostVolumes {
        /// Takes all threads of the pool until the senders are gone.
        async fn turns_of_host_paths(&self) -> Vec<mpsc::Sender<()>> {
            let mut held = Vec::new();
            for number in 0..6 {
                let (release, released) = mpsc::channel::<()>();
                let (begin, begun) = tokio::sync::oneshot::channel();
                let volumes = self.clone();
                tokio::spawn(async move {
                    let hang = move |_: &VolumePlugins| {
                        begin.send(()).ok();
                        released.recv().ok();
                        Ok(())
                    };
                    let pool = &volumes.0.host_path_pool;
                    volumes.blocking(pool, &number.to_string(), hang).await
                });
                begun.await.unwrap();
                held.push(release);
            }
            held
        }
    }

    /// Row H27 of docs/security.md.
    #[tokio::test]
    async fn a_volume_whose_name_leads_elsewhere_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let volumes = HostVolumes::new(root.path().join("root"), Arc::new(SystemClock::start()));
        let kept = root.path().join("root/pods/u/kept");
        fs::create_dir_all(&kept).unwrap();
        for (name, plugin) in [("../../kept", "kubernetes.io/empty-dir"), ("kept", "../..")] {
            let volume = MountedVolume::found(name.to_owned(), plugin.to_owned());
            let refused = volumes.tear_down(&PodUid::from("u"), vec![volume]).await;
            assert!(kept.exists(), "{name}: {refused:?}");
        }
    }
}
