//! A directory or file of the machine itself. It is not ours: what is there is checked, and made only if the spec says so.

use std::fs::{self, DirBuilder, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use k8s_openapi::api::core::v1::HostPathVolumeSource;

use crate::VolumeError;
use crate::plugin::{VolumePlugin, VolumeToSetUp};

/// `hostPath` volumes.
pub(crate) struct HostPathPlugin;

impl VolumePlugin for HostPathPlugin {
    fn name(&self) -> &'static str {
        "kubernetes.io/host-path"
    }

    fn set_up(&self, mount: &VolumeToSetUp<'_>) -> Result<(), VolumeError> {
        let claimed = mount.claimed.and_then(|claimed| claimed.volume.spec.as_ref());
        let claimed = claimed.and_then(|spec| spec.host_path.as_ref());
        let source = mount.volume.host_path.as_ref().or(claimed);
        source.map_or(Ok(()), |source| check(&mount.volume.name, source))
    }
}

/// Makes sure that what is there is of the type that the volume asks for.
fn check(volume: &str, source: &HostPathVolumeSource) -> Result<(), VolumeError> {
    let path = Path::new(&source.path);
    let wanted = match source.type_.as_deref().unwrap_or_default() {
        "DirectoryOrCreate" => return create(volume, path, HostPathKind::Directory),
        "FileOrCreate" => return create(volume, path, HostPathKind::File),
        "Directory" => HostPathKind::Directory,
        "File" => HostPathKind::File,
        "Socket" => HostPathKind::Socket,
        "CharDevice" => HostPathKind::CharDevice,
        "BlockDevice" => HostPathKind::BlockDevice,
        _ => return Ok(()),
    };
    let there = stat(volume, path)?;
    check_kind(volume, path, there.as_ref(), wanted)
}

#[derive(Clone, Copy)]
enum HostPathKind {
    Directory,
    File,
    Socket,
    CharDevice,
    BlockDevice,
}

impl HostPathKind {
    fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Socket => "socket",
            Self::CharDevice => "character device",
            Self::BlockDevice => "block device",
        }
    }

    fn fits(self, there: FileType) -> bool {
        match self {
            Self::Directory => there.is_dir(),
            Self::File => there.is_file(),
            Self::Socket => there.is_socket(),
            Self::CharDevice => there.is_char_device(),
            Self::BlockDevice => there.is_block_device(),
        }
    }
}

/// A path of the host belongs to the administrator: symlinks in it are followed.
fn stat(volume: &str, path: &Path) -> Result<Option<Metadata>, VolumeError> {
    match fs::metadata(path) {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(volume, "look at", path, error)),
    }
}

fn check_kind(
    volume: &str,
    path: &Path,
    there: Option<&Metadata>,
    wanted: HostPathKind,
) -> Result<(), VolumeError> {
    let (volume, path, name) = (volume.to_owned(), path.to_owned(), wanted.name());
    match there {
        Some(there) if wanted.fits(there.file_type()) => Ok(()),
        Some(_) => Err(VolumeError::WrongType { volume, path, wanted: name }),
        None => Err(VolumeError::Missing { volume, path, wanted: name }),
    }
}

fn create(volume: &str, path: &Path, wanted: HostPathKind) -> Result<(), VolumeError> {
    let there = stat(volume, path)?;
    if there.is_some() {
        return check_kind(volume, path, there.as_ref(), wanted);
    }
    let made = match wanted {
        HostPathKind::Directory => DirBuilder::new().recursive(true).mode(0o755).create(path),
        // Of a file, the directory it lies in is not made: it could be one that is yet to be mounted.
        _ => OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map(drop),
    };
    made.map_err(|error| failed(volume, "make", path, error))
}

fn failed(volume: &str, doing: &'static str, path: &Path, source: io::Error) -> VolumeError {
    VolumeError::System { volume: volume.to_owned(), doing, path: path.to_owned(), source }
}
