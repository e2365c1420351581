//! Bind mounts: opened by the helper, which reaches every file of the host and can map their users, and attached in the container by its first
//! process, which is led nowhere but to files of the container.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use oarsman_host::mount_trees::{self, MountChanges, Propagation};
use oci_spec::runtime::Mount;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, mkdir, openat2};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::HelperError;
use super::user_namespace::ContainerUsers;

const PROC: &str = "/proc";
/// As the kernel names the file system.
const PROC_MAGIC: u64 = 0x9fa0;
/// Files of `/proc` that programs such as lxcfs replace for a container; a mount over any other would pretend something to what configures the
/// container there.
const REPLACEABLE: [&str; 11] = [
    "cpuinfo",
    "diskstats",
    "meminfo",
    "stat",
    "swaps",
    "uptime",
    "loadavg",
    "slabinfo",
    "net/dev",
    "sys/kernel/ns_last_pid",
    "sys/crypto/fips_enabled",
];

/// As many links as the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// A bind mount that is not attached yet.
#[derive(Debug)]
pub(super) struct PreparedBind {
    pub(super) destination: PathBuf,
    tree: OwnedFd,
    is_directory: bool,
}

/// What the options of a bind mount ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BindOptions {
    recursive: bool,
    set: MountAttrFlags,
    set_on_all: MountAttrFlags,
    propagation: Option<Propagation>,
    is_mapped: bool,
    maps_all: bool,
}

pub(super) fn is_bind(mount: &Mount) -> bool {
    let options = mount.options().iter().flatten();
    mount.typ().as_deref() == Some("bind") || options.into_iter().any(|one| one.ends_with("bind"))
}

impl PreparedBind {
    /// Opens what is to be mounted.
    pub(super) fn open(mount: &Mount, users: &mut ContainerUsers) -> Result<Self, HelperError> {
        let source = mount.source().as_deref().unwrap_or(Path::new(""));
        let shown =
            || format!("cannot mount {} at {}", source.display(), mount.destination().display());
        let options = options(mount).map_err(|option| {
            HelperError::Invalid(format!("{}: there is no mount option {option:?}", shown()))
        })?;
        let failed = |source| HelperError::Io { what: shown(), source };
        let tree = mount_trees::copy(source, options.recursive).map_err(failed)?;
        configure(&tree, mount, options, users).map_err(failed)?;
        let kind = FileType::from_raw_mode(fstat(&tree).map_err(|e| failed(e.into()))?.st_mode);
        let destination = mount.destination().clone();
        Ok(Self { destination, tree, is_directory: kind == FileType::Directory })
    }

    /// A directory of the host as it is, without what is mounted below it.
    pub(super) fn of_directory(source: &Path, destination: PathBuf) -> io::Result<Self> {
        let tree = mount_trees::copy(source, false)?;
        let set = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let propagation = Some(Propagation::Private);
        let changes = MountChanges { set, propagation, ..MountChanges::default() };
        mount_trees::change(tree.as_fd(), changes)?;
        Ok(Self { destination, tree, is_directory: true })
    }

    /// Attaches it in the root directory that this process has.
    pub(super) fn attach(&self) -> io::Result<()> {
        let point = self.make_point()?;
        if is_proc(&point)? && !self.may_replace()? {
            return Err(io::Error::other("nothing can be mounted over this file of /proc"));
        }
        mount_trees::attach(self.tree.as_fd(), point.as_fd())
    }

    /// The file or directory that is mounted over, which is made if there is none.
    fn make_point(&self) -> io::Result<OwnedFd> {
        match open_point(&self.destination) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        if self.is_directory {
            make_directories(&self.destination)?;
        } else {
            self.destination.parent().map_or(Ok(()), make_directories)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::open(&self.destination, flags, Mode::from_raw_mode(0o644))?;
        }
        open_point(&self.destination)
    }

    fn may_replace(&self) -> io::Result<bool> {
        match self.destination.strip_prefix(PROC) {
            Ok(below) if below.as_os_str().is_empty() => is_proc(&self.tree),
            Ok(below) => Ok(REPLACEABLE.iter().any(|name| below == Path::new(name))),
            Err(_) => Ok(false),
        }
    }
}

fn open_point(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?)
}

/// Makes a directory and those above it, for all users to read, also where a link of the image leads that leads nowhere yet.
pub(super) fn make_directories(path: &Path) -> io::Result<()> {
    make_within(path, MOST_LINKS)
}

fn make_within(path: &Path, links: u32) -> io::Result<()> {
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    for part in above.into_iter().filter(|part| !part.as_os_str().is_empty()) {
        match mkdir(part, Mode::from_raw_mode(0o755)) {
            Ok(()) => {}
            Err(error @ Errno::EXIST) => match std::fs::metadata(part) {
                Ok(found) if found.is_dir() => {}
                Err(missing) if missing.kind() == io::ErrorKind::NotFound && links > 0 => {
                    let target = std::fs::read_link(part)?;
                    make_within(&part.parent().unwrap_or(part).join(target), links - 1)?;
                }
                Ok(_) | Err(_) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is_proc(opened: &OwnedFd) -> io::Result<bool> {
    Ok(u64::try_from(fstatfs(opened)?.f_type).is_ok_and(|magic| magic == PROC_MAGIC))
}

fn options(mount: &Mount) -> Result<BindOptions, &str> {
    let mut all = BindOptions {
        recursive: false,
        set: MountAttrFlags::empty(),
        set_on_all: MountAttrFlags::empty(),
        propagation: None,
        maps_all: false,
        is_mapped: mount.uid_mappings().as_ref().is_some_and(|all| !all.is_empty())
            || mount.gid_mappings().as_ref().is_some_and(|all| !all.is_empty()),
    };
    for option in mount.options().iter().flatten() {
        match option.as_str() {
            "bind" | "rw" | "suid" | "dev" | "exec" | "defaults" => {}
            "rbind" => all.recursive = true,
            "ro" => all.set |= MountAttrFlags::MOUNT_ATTR_RDONLY,
            "rro" => all.set_on_all |= MountAttrFlags::MOUNT_ATTR_RDONLY,
            "nosuid" => all.set |= MountAttrFlags::MOUNT_ATTR_NOSUID,
            "nodev" => all.set |= MountAttrFlags::MOUNT_ATTR_NODEV,
            "noexec" => all.set |= MountAttrFlags::MOUNT_ATTR_NOEXEC,
            "private" | "rprivate" => all.propagation = Some(Propagation::Private),
            "slave" | "rslave" => all.propagation = Some(Propagation::Slave),
            "shared" | "rshared" => all.propagation = Some(Propagation::Shared),
            "idmap" => all.is_mapped = true,
            "ridmap" => (all.is_mapped, all.maps_all) = (true, true),
            other => return Err(other),
        }
    }
    Ok(all)
}

fn configure(
    tree: &OwnedFd,
    mount: &Mount,
    options: BindOptions,
    users: &mut ContainerUsers,
) -> io::Result<()> {
    let change = |changes| mount_trees::change(tree.as_fd(), changes);
    change(MountChanges { set: options.set, ..MountChanges::default() })?;
    let (propagation, set) = (options.propagation, options.set_on_all);
    change(MountChanges { propagation, set, recursive: true, ..MountChanges::default() })?;
    if !options.is_mapped {
        return Ok(());
    }
    let namespace = users.namespace_for(mount)?;
    let user_namespace = Some(namespace.as_fd());
    let recursive = options.maps_all;
    let mapped = change(MountChanges { user_namespace, recursive, ..MountChanges::default() });
    mapped.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!(
                "its file system cannot map users and groups ({error}): disks need Linux 5.12 or newer, tmpfs 6.3, and overlayfs never can"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use oci_spec::runtime::MountBuilder;

    use super::*;

    fn bind(options: &[&str]) -> Mount {
        let options: Vec<String> = options.iter().map(|one| (*one).to_owned()).collect();
        MountBuilder::default().destination("/data").typ("bind").options(options).build().unwrap()
    }

    #[test]
    fn options_are_understood_or_told() {
        let read_only = MountAttrFlags::MOUNT_ATTR_RDONLY;
        let mount = bind(&["rbind", "rslave", "ro", "rro"]);
        let found = options(&mount).unwrap();
        assert_eq!((found.recursive, found.set, found.set_on_all), (true, read_only, read_only));
        assert_eq!((found.propagation, found.is_mapped), (Some(Propagation::Slave), false));
        let mount = bind(&["bind", "ridmap"]);
        let found = options(&mount).unwrap();
        assert!(!found.recursive && found.is_mapped && found.maps_all);
        let mount = bind(&["bind", "fancy"]);
        assert_eq!(options(&mount), Err("fancy"));
    }
}
