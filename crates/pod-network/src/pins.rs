//! Namespaces that live without a process: pinned by mounts of their files, so that a sandbox needs no pause process.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use oarsman_host::files::is_plain_name;
use oarsman_host::mounts::is_mount_point;
use oarsman_host::namespaces::NamespaceKind;
use oarsman_host::thread_namespaces;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::system::sethostname;

use crate::error::{PodNetworkError, file_error, refused};
use crate::files::{make_directory, names_in, remove_directory, remove_file};

/// The kinds that sandboxes share among their containers; of other kinds nothing is pinned.
const KINDS: [NamespaceKind; 4] =
    [NamespaceKind::User, NamespaceKind::Network, NamespaceKind::Ipc, NamespaceKind::Uts];
/// A pin may have been mounted more than once by a process that was killed; not this often.
const MAX_MOUNTS: usize = 64;

/// The pinned namespaces of sandboxes: one directory for each sandbox, one file for each namespace.
#[derive(Clone, Debug)]
pub struct NamespacePins {
    directory: PathBuf,
}

impl NamespacePins {
    /// Those below a directory, which is made when it is needed.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The file that stands for a namespace of a sandbox, to be joined by its containers.
    ///
    /// # Errors
    /// When the id is no plain name.
    pub fn path(&self, sandbox: &str, kind: NamespaceKind) -> Result<PathBuf, PodNetworkError> {
        Ok(self.of_sandbox(sandbox)?.join(kind.file_name()))
    }

    /// Makes and pins namespaces of the given kinds; those that are pinned already stay as they are. A new UTS namespace gets the host
    /// name, a new network namespace has nothing but a loopback link that is down.
    ///
    /// # Errors
    /// When the kernel refuses, such as a host name of more than 64 bytes.
    pub fn create(
        &self,
        sandbox: &str,
        kinds: &[NamespaceKind],
        hostname: Option<&str>,
    ) -> Result<(), PodNetworkError> {
        let mut missing = Vec::new();
        for kind in kinds {
            let point = self.prepare(sandbox, *kind)?;
            if !is_pinned(&point)? {
                missing.push((*kind, point));
            }
        }
        let kinds: Vec<NamespaceKind> = missing.iter().map(|(kind, _)| *kind).collect();
        if kinds.is_empty() {
            return Ok(());
        }
        let pin_all = || {
            if let Some(hostname) = hostname.filter(|_| kinds.contains(&NamespaceKind::Uts)) {
                let action = format!("set the host name {hostname:?}");
                sethostname(hostname.as_bytes())
                    .map_err(io::Error::from)
                    .map_err(refused(action))?;
            }
            missing.iter().try_for_each(|(kind, point)| {
                pin(&Path::new("/proc/thread-self/ns").join(kind.file_name()), point)
            })
        };
        thread_namespaces::in_new(&kinds, pin_all)
            .map_err(refused(format!("make namespaces for sandbox {sandbox}")))?
    }

    /// Pins a namespace that a process has made, such as one inside of a user namespace, by its file in `/proc/<pid>/ns`.
    ///
    /// # Errors
    /// When one of that kind is pinned already, or the kernel refuses.
    pub fn adopt(
        &self,
        sandbox: &str,
        kind: NamespaceKind,
        namespace: &Path,
    ) -> Result<(), PodNetworkError> {
        let point = self.prepare(sandbox, kind)?;
        match is_pinned(&point)? {
            true => Err(file_error("pin a namespace at", &point)(Errno::EXIST.into())),
            false => pin(namespace, &point),
        }
    }

    /// Opens a pinned namespace.
    ///
    /// # Errors
    /// When none of that kind is pinned for the sandbox.
    pub fn open(&self, sandbox: &str, kind: NamespaceKind) -> Result<File, PodNetworkError> {
        let point = self.path(sandbox, kind)?;
        match is_pinned(&point)? {
            true => File::open(&point).map_err(file_error("open", &point)),
            false => Err(file_error("open the namespace", &point)(Errno::NOENT.into())),
        }
    }

    /// Removes the pins of the given kinds. A namespace ends with its last process.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove(&self, sandbox: &str, kinds: &[NamespaceKind]) -> Result<(), PodNetworkError> {
        for kind in kinds {
            let point = self.path(sandbox, *kind)?;
            unpin(&point)?;
            remove_file(&point)?;
        }
        // The directory stays while it holds pins of other kinds.
        let directory = self.of_sandbox(sandbox)?;
        match names_in(&directory)?.is_empty() {
            true => remove_directory(&directory),
            false => Ok(()),
        }
    }

    /// Removes all pins of a sandbox; fine when there are none.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove_all(&self, sandbox: &str) -> Result<(), PodNetworkError> {
        self.remove(sandbox, &KINDS)
    }

    /// The sandboxes that have pins, or had some that were not removed wholly.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn sandboxes(&self) -> Result<Vec<String>, PodNetworkError> {
        names_in(&self.directory)
    }

    /// Removes the directory when no sandbox has pins.
    pub(crate) fn remove_directory(&self) -> Result<(), PodNetworkError> {
        remove_directory(&self.directory)
    }

    fn of_sandbox(&self, sandbox: &str) -> Result<PathBuf, PodNetworkError> {
        match is_plain_name(sandbox) {
            true => Ok(self.directory.join(sandbox)),
            false => Err(PodNetworkError::SandboxId { sandbox: sandbox.to_owned() }),
        }
    }

    /// Makes the file that is mounted over.
    fn prepare(&self, sandbox: &str, kind: NamespaceKind) -> Result<PathBuf, PodNetworkError> {
        make_directory(&self.of_sandbox(sandbox)?)?;
        let point = self.path(sandbox, kind)?;
        if !is_pinned(&point)? {
            File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&point)
                .map_err(file_error("make", &point))?;
        }
        Ok(point)
    }
}

fn is_pinned(point: &Path) -> Result<bool, PodNetworkError> {
    is_mount_point(point).map_err(file_error("look for a mount at", point))
}

fn pin(namespace: &Path, point: &Path) -> Result<(), PodNetworkError> {
    mount_bind(namespace, point)
        .map_err(io::Error::from)
        .map_err(file_error("pin a namespace at", point))
}

fn unpin(point: &Path) -> Result<(), PodNetworkError> {
    for _ in 0..MAX_MOUNTS {
        match unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            // Nothing is mounted there, or there is nothing.
            Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            Err(error) => return Err(file_error("unmount", point)(error.into())),
        }
    }
    Err(file_error("unmount", point)(Errno::BUSY.into()))
}
