//! Log directories, the links by which logs are found by container, and when both go.
//!
//! A container that has these directories mounted may put anything in their place. So their paths are resolved once, at the start, and
//! from then on no link is followed on the way to them or below them. What is wrong with them concerns pods that need them, and not the
//! agent.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::{log_directory, log_link, log_path};
use oarsman_core::gc::logs::{pod_of, unknown_pod_of};
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::view::ContainerView;
use oarsman_host::beneath::RootDirectory;

use super::PodFileSettings;
use super::directories::is_removed;
use crate::error::{FileError, failed};
use crate::files::{make_directory, names_of, resolved, tail, unless_gone};

/// Log collectors of any user go through them.
const MODE: u32 = 0o755;
/// No pod has more containers; a container that writes to the log directories may make any number.
const MAX_CONTAINERS: usize = 4096;

/// The directory of logs, and that of links to them.
#[derive(Debug)]
pub(super) struct LogDirectories {
    /// As it is called where links lead to it.
    named: PathBuf,
    /// The same without links in its path.
    logs: PathBuf,
    links: Option<PathBuf>,
}

impl LogDirectories {
    /// Makes the directories where there are none.
    pub(super) fn open(settings: &PodFileSettings) -> Self {
        let PodFileSettings { pod_logs, container_logs, .. } = settings;
        for directory in [pod_logs].into_iter().chain(container_logs) {
            if let Err(error) = make_directory(directory, MODE) {
                tracing::error!(%error, path = %directory.display(), "log directory not made, pods that need it do not start");
            }
        }
        let links = container_logs.as_deref().map(resolved);
        Self { named: pod_logs.clone(), logs: resolved(pod_logs), links }
    }

    /// The directory of all logs, without links in its path.
    pub(super) fn path(&self) -> &Path {
        &self.logs
    }

    pub(super) fn root(&self) -> io::Result<RootDirectory> {
        RootDirectory::open_resolved(&self.logs)
    }

    /// Makes a pod's log directory, or within it a container's.
    pub(super) fn make_directory(
        &self,
        pod: &Pod,
        container: Option<&str>,
    ) -> Result<(), FileError> {
        let below = below(pod, container);
        let made = make_resolved(&self.logs).and_then(|root| root.make_directory(&below, MODE));
        made.map(drop).map_err(failed("make the directory", &self.logs.join(&below)))
    }

    /// The name of the log directory of a pod of which only the UID is known.
    fn directory_of(root: &RootDirectory, uid: &PodUid) -> io::Result<Option<String>> {
        let mut own = None;
        root.each_name(&mut |name| {
            own =
                name.to_str().filter(|name| pod_of(name).as_ref() == Some(uid)).map(str::to_owned);
            own.is_none()
        })?;
        Ok(own)
    }

    /// The names of the files in a container's log directory.
    pub(super) fn names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, FileError> {
        let below = below(pod, Some(container));
        let opened = self.root().and_then(|root| root.open_directory(&below));
        names_of(opened, &self.logs.join(below))
    }

    /// The log directories of a pod's containers, by container.
    pub(super) fn of_containers(
        &self,
        uid: &PodUid,
    ) -> Result<BTreeMap<String, PathBuf>, FileError> {
        let read = || {
            let root = self.root()?;
            let Some(name) = Self::directory_of(&root, uid)? else { return Ok(BTreeMap::new()) };
            let mut found = BTreeMap::new();
            root.open_directory(Path::new(&name))?.each_name(&mut |container| {
                let path = self.logs.join(&name).join(container);
                found.extend(container.to_str().map(|container| (container.to_owned(), path)));
                found.len() < MAX_CONTAINERS
            })?;
            Ok(found)
        };
        unless_gone(read()).map_err(failed("list the logs in", &self.logs))
    }

    /// The last bytes of a container's log.
    pub(super) fn end_of(
        &self,
        uid: &PodUid,
        container: &ContainerView,
        limit: u64,
    ) -> Result<Vec<u8>, FileError> {
        let read = || {
            let root = self.root()?;
            let Some(name) = Self::directory_of(&root, uid)? else { return Ok(Vec::new()) };
            let log = log_path(&container.name, container.label.restart_count);
            tail(&root, &Path::new(&name).join(log), limit)
        };
        unless_gone(read()).map_err(failed("read a log in", &self.logs))
    }

    /// Links the log of a container under a name with the container's id.
    pub(super) fn link(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        id: &ContainerId,
    ) -> Result<(), FileError> {
        let Some(links) = &self.links else { return Ok(()) };
        let log = log_directory(&self.named, pod).join(log_path(container, restart_count));
        let name = log_link(&pod.full_name(), container, id);
        let make = || {
            let links = make_resolved(links)?;
            unless_gone(links.remove_file(Path::new(&name)))?;
            links.make_link(&log, OsStr::new(&name))
        };
        make().map_err(failed("link the log at", &links.join(&name)))
    }

    /// Removes a container's log with all that was rotated away from it, and its link.
    pub(super) fn remove(
        &self,
        uid: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), FileError> {
        self.remove_link(&log_link(name, &container.name, &container.id));
        let of_pod = format!("{}_{}_{uid}", name.namespace, name.name);
        let below = Path::new(&of_pod).join(&container.name);
        let log = format!("{}.log", container.label.restart_count);
        let removed = self.root().and_then(|root| remove_logs(&root, &below, &log));
        unless_gone(removed).map_err(failed("remove the logs in", &self.logs.join(&below)))
    }

    /// Removes a pod's log directory; false when there is more in it than was removed at once. Where there is no directory of logs any
    /// more, there are none of the pod.
    pub(super) fn remove_directory(&self, uid: &PodUid) -> Result<bool, FileError> {
        let find = || {
            let root = self.root()?;
            Ok(Self::directory_of(&root, uid)?.map(|name| (root, name)))
        };
        let Some((root, name)) = self.or_none(unless_gone(find())) else { return Ok(true) };
        let removed = is_removed(root.remove_tree(OsStr::new(&name)));
        let removed = removed.map_err(failed("remove the logs in", &self.logs.join(name)))?;
        self.remove_dangling_links();
        Ok(removed)
    }

    /// Pods of which nothing may be known but that they have logs.
    pub(super) fn pods(&self) -> impl Iterator<Item = PodUid> {
        let names = self.or_none(names_of(self.root(), &self.logs));
        names.into_iter().filter_map(|name| unknown_pod_of(&name))
    }

    /// Nothing, when the directory of logs is not what it should be.
    fn or_none<T: Default, E: std::fmt::Display>(&self, result: Result<T, E>) -> T {
        result.unwrap_or_else(|error| {
            tracing::warn!(%error, path = %self.logs.display(), "log directory not usable, logs in it are not removed");
            T::default()
        })
    }

    /// Removes links into log directories that are gone. Where only the file is missing, it is being rotated.
    pub(super) fn remove_dangling_links(&self) {
        let remove = |path: &Path| {
            let (links, root) = (RootDirectory::open_resolved(path)?, self.root()?);
            let is_lost = |name: &str| {
                links.read_link(OsStr::new(name)).is_ok_and(|log| self.is_lost(&root, &log))
            };
            let names =
                names_of(RootDirectory::open_resolved(path), path).map_err(io::Error::other)?;
            let mut lost = names.iter().filter(|name| is_lost(name));
            lost.try_for_each(|name| unless_gone(links.remove_file(Path::new(name))))
        };
        self.change_links(remove);
    }

    fn remove_link(&self, name: &str) {
        self.change_links(|links| {
            RootDirectory::open_resolved(links)?.remove_file(Path::new(name))
        });
    }

    /// Links are a convenience: nothing of a pod depends on them.
    fn change_links(&self, change: impl FnOnce(&Path) -> io::Result<()>) {
        let Some(links) = &self.links else { return };
        if let Err(error) = unless_gone(change(links)) {
            tracing::warn!(%error, path = %links.display(), "links of container logs not removed, will retry");
        }
    }

    /// Whether a log of ours lies in a pod's directory that is not there.
    fn is_lost(&self, root: &RootDirectory, log: &Path) -> bool {
        let of_pod = log.ancestors().nth(2);
        let of_pod = of_pod.filter(|directory| directory.parent() == Some(&self.named));
        let name = of_pod.and_then(Path::file_name);
        name.is_some_and(|name| matches!(root.has_directory(Path::new(name)), Ok(false)))
    }
}

/// Opens a directory whose path has been resolved, and makes it where it is missing.
fn make_resolved(path: &Path) -> io::Result<RootDirectory> {
    let from_top = || {
        let below = path.strip_prefix("/").map_err(io::Error::other)?;
        RootDirectory::open(Path::new("/"))?.make_directory(below, MODE)
    };
    match RootDirectory::open_resolved(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => from_top(),
        opened => opened,
    }
}

/// A pod's log directory, or a container's, below that of all logs.
fn below(pod: &Pod, container: Option<&str>) -> PathBuf {
    let of_pod = log_directory(Path::new(""), pod);
    container.map_or(of_pod.clone(), |name| of_pod.join(name))
}

/// Removes a log and what was rotated away from it. A container that has the directories above it mounted may have put a link in
/// their place, which must not lead to the removal of other files.
fn remove_logs(root: &RootDirectory, below: &Path, log: &str) -> io::Result<()> {
    let directory = root.open_directory(below)?;
    let mut removed = Ok(());
    directory.each_name(&mut |name| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(log));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
            removed = unless_gone(directory.remove_file(Path::new(name)));
        }
        removed.is_ok()
    })?;
    removed
}
