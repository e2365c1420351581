//! Mounts layers over each other.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount, move_mount,
};

/// The kernel takes no longer value of one option, with the zero at its end.
const MAX_VALUE: usize = 255;
/// The kernel takes no longer options of one mount.
const MAX_OPTIONS: usize = 4095;

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverlayLayers {
    /// The topmost first.
    pub(crate) lower: Vec<PathBuf>,
    /// The writable layer, and a directory for overlayfs itself beside it.
    pub(crate) upper: Option<(PathBuf, PathBuf)>,
}

/// Mounts layers at a directory.
///
/// Layers are handed to the kernel one by one (`lowerdir+`, Linux 6.7), so that their number and the length of their paths does not
/// matter. Older kernels get all options in one page, in which `/proc/self/fd/N` stands for each path: some 220 layers.
pub(crate) fn mount_at(
    layers: &OverlayLayers,
    target: &Path,
    attributes: MountAttrFlags,
) -> io::Result<()> {
    let mut open = Vec::new();
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    match configure(&context, layers, &mut open) {
        Err(Errno::INVAL) if !knows_lowerdir_plus() => {
            return mount_old(layers, target, attributes);
        }
        configured => configured.map_err(|error| explained(&context, error))?,
    }
    let made = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes);
    let made = made.map_err(|error| explained(&context, error))?;
    move_mount(&made, c"", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok(())
}

fn configure(
    context: &OwnedFd,
    layers: &OverlayLayers,
    open: &mut Vec<OwnedFd>,
) -> Result<(), Errno> {
    fsconfig_set_string(context, "source", "overlay")?;
    for layer in &layers.lower {
        fsconfig_set_string(context, "lowerdir+", short(layer, open)?)?;
    }
    if let Some((upper, work)) = &layers.upper {
        fsconfig_set_string(context, "upperdir", short(upper, open)?)?;
        fsconfig_set_string(context, "workdir", short(work, open)?)?;
        // Without it, each unmount syncs the whole file system that the layer is on. What a container has written is of no use after a power failure: it
        // is not started again.
        fsconfig_set_flag(context, "volatile")?;
    }
    // As containerd does: an index would bind the writable layer to these very lower directories.
    fsconfig_set_string(context, "index", "off")?;
    fsconfig_create(context)
}

/// A path that the kernel takes as one value: itself, or that of a descriptor.
fn short(path: &Path, open: &mut Vec<OwnedFd>) -> Result<PathBuf, Errno> {
    if path.as_os_str().as_bytes().len() <= MAX_VALUE {
        return Ok(path.to_owned());
    }
    by_descriptor(path, open).map(PathBuf::from)
}

fn by_descriptor(path: &Path, open: &mut Vec<OwnedFd>) -> Result<String, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, path, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    open.push(opened);
    Ok(path)
}

/// Whether the kernel knows the option, which it says of any directory.
fn knows_lowerdir_plus() -> bool {
    let ask = || {
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&context, "lowerdir+", "/")
    };
    ask().is_ok()
}

/// The kernel writes a reason to the context of the mount.
fn explained(context: &OwnedFd, error: Errno) -> io::Error {
    let mut text = [0; 512];
    let length = rustix::io::read(context.as_fd(), &mut text[..]).unwrap_or(0);
    let said = String::from_utf8_lossy(&text[..length]);
    match said.trim() {
        "" => error.into(),
        said => io::Error::other(format!("{error} ({said})")),
    }
}

/// As one string; paths are those of descriptors, in which nothing is to be escaped.
pub(crate) fn mount_old(
    layers: &OverlayLayers,
    target: &Path,
    attributes: MountAttrFlags,
) -> io::Result<()> {
    let mut open = Vec::new();
    let lower: Vec<String> =
        layers.lower.iter().map(|it| by_descriptor(it, &mut open)).collect::<Result<_, _>>()?;
    let mut options = format!("index=off,lowerdir={}", lower.join(":"));
    if let Some((upper, work)) = &layers.upper {
        let (upper, work) = (by_descriptor(upper, &mut open)?, by_descriptor(work, &mut open)?);
        options = format!("{options},upperdir={upper},workdir={work},volatile");
    }
    if options.len() > MAX_OPTIONS {
        let count = layers.lower.len();
        let why = format!("it has {count} layers, which needs Linux 6.7 or newer");
        return Err(io::Error::other(why));
    }
    let options = CString::new(options).map_err(io::Error::other)?;
    let flags = [
        (MountAttrFlags::MOUNT_ATTR_RDONLY, MountFlags::RDONLY),
        (MountAttrFlags::MOUNT_ATTR_NOEXEC, MountFlags::NOEXEC),
        (MountAttrFlags::MOUNT_ATTR_NOSUID, MountFlags::NOSUID),
        (MountAttrFlags::MOUNT_ATTR_NODEV, MountFlags::NODEV),
    ];
    let flags = flags.iter().filter(|(attribute, _)| attributes.contains(*attribute));
    let flags = flags.fold(MountFlags::empty(), |all, (_, flag)| all | *flag);
    Ok(mount("overlay", target, "overlay", flags, options.as_c_str())?)
}
