//! Scans files that are made for a pod and must be removed with it, and stray files.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::super::HostResource;
use crate::rig::{RigLayout, embedded};

/// Directories that programs write to by default. A program that is configured for the rig should not.
const STRAYS: [&str; 5] = ["/run", "/var/lib", "/var/log", "/etc/cni", "/opt/cni"];
/// Has one file for each attachment of a pod to a network. CNI cannot be configured to use another directory.
const CNI_RESULTS: &str = "/var/lib/cni/results";

pub(super) fn scan(layout: &RigLayout) -> io::Result<BTreeSet<HostResource>> {
    let mut paths = BTreeSet::new();
    for directory in by_pod(layout).into_iter().chain(embedded::by_pod(&layout.root())) {
        paths.extend(entries(&directory)?.iter().map(DirEntry::path));
    }
    paths.extend(listening_sockets(&layout.shim_sockets())?);
    walk(&layout.logs(), &mut paths)?;
    for directory in agents_directories(layout)? {
        walk(&directory, &mut paths)?;
    }
    for directory in STRAYS {
        walk(Path::new(directory), &mut paths)?;
    }
    // These directories are made for the first pod and stay.
    let kept = [Path::new(CNI_RESULTS), &layout.shim_sockets()];
    paths.retain(|path| !kept.iter().any(|kept| kept.starts_with(path)));
    paths.retain(|path| !is_kept_with_leases(path, layout));
    Ok(paths.into_iter().map(|path| HostResource::File { path }).collect())
}

/// The directories of containerd, its shims, runc and CNI that have an entry or more for each pod. They themselves are made for the first pod
/// and stay.
fn by_pod(layout: &RigLayout) -> Vec<PathBuf> {
    let mut directories = vec![layout.leases_of_network()];
    for namespace in ["k8s.io", "default"] {
        directories.push(layout.runc_root().join(namespace));
        for root in [layout.root(), layout.state()] {
            directories.push(root.join("io.containerd.runtime.v2.task").join(namespace));
        }
    }
    for root in [layout.root(), layout.state()] {
        for kind in ["sandboxes", "containers", "netns"] {
            directories.push(root.join("io.containerd.grpc.v1.cri").join(kind));
        }
    }
    directories
}

/// The sockets of shims that a process listens on. containerd leaves the file of a socket behind when it kills a shim, or `shim start` because
/// the context of its call ended: nothing of a pod is left then, and an agent cannot know the name of that file.
fn listening_sockets(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/net/unix")?;
    let bound: BTreeSet<&Path> =
        table.lines().filter_map(|line| line.split_whitespace().nth(7)).map(Path::new).collect();
    let paths = entries(directory)?.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| bound.contains(path.as_path())).collect())
}

/// The directory of an agent's root with the records of image pulls, which are about images and outlive pods.
const IMAGE_RECORDS: &str = "image_manager";

/// The directories directly below an agent's root: they are made by the agent and stay, what is in them belongs to a pod.
fn agents_directories(layout: &RigLayout) -> io::Result<Vec<PathBuf>> {
    let mut directories = Vec::new();
    for agent in entries(&layout.agents())?.iter().filter(|entry| entry.path().is_dir()) {
        directories.extend(embedded::by_pod(&agent.path()));
        let inside = entries(&agent.path())?.into_iter();
        let runtime = embedded::runtime_directory(&agent.path());
        let inside =
            inside.filter(|entry| entry.file_name() != IMAGE_RECORDS && entry.path() != runtime);
        directories.extend(inside.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    Ok(directories)
}

/// Beside the leases there are a lock and the last address that was assigned.
fn is_kept_with_leases(path: &Path, layout: &RigLayout) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.parent() == Some(&layout.leases_of_network())
        && (name == "lock" || name.starts_with("last_reserved_ip"))
}

/// All that is below a directory.
fn walk(directory: &Path, paths: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in entries(directory)? {
        paths.insert(entry.path());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), paths)?;
        }
    }
    Ok(())
}

/// A directory that is not there has nothing in it.
fn entries(directory: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
