//! Devices of the node that a container may use.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use oarsman_cri_types::v1::Device;
use oci_spec::runtime::{
    LinuxDevice, LinuxDeviceBuilder, LinuxDeviceCgroup, LinuxDeviceCgroupBuilder, LinuxDeviceType,
};
use rustix::fs::{major, minor};

use super::SpecError;

/// Directories below `/dev` that are mounts of a container's own.
const NOT_SHARED: [&str; 4] = ["pts", "shm", "mqueue", "fd"];
/// More than any machine has.
const MOST_DEVICES: usize = 4096;

/// The nodes that are made, and the rules of the control group for them.
#[derive(Debug, Default)]
pub(crate) struct ContainerDevices {
    pub(crate) nodes: Vec<LinuxDevice>,
    pub(crate) rules: Vec<LinuxDeviceCgroup>,
}

/// The devices of a container. A privileged one has all of the node.
pub(crate) fn devices(asked: &[Device], privileged: bool) -> Result<ContainerDevices, SpecError> {
    let mut all = ContainerDevices::default();
    let rule = LinuxDeviceCgroupBuilder::default().allow(privileged).access("rwm");
    all.rules.push(rule.build()?);
    if privileged {
        add_tree(&mut all, Path::new("/dev"), Path::new("/dev"), "rwm")?;
        // One rule allows everything already.
        all.rules.truncate(1);
    }
    for device in asked {
        let (host, inside) = (Path::new(&device.host_path), Path::new(&device.container_path));
        let failed = |source| SpecError::Device { path: host.to_owned(), source };
        let host = host.canonicalize().map_err(failed)?;
        if host.is_dir() {
            add_tree(&mut all, &host, inside, &device.permissions)?;
        } else {
            let metadata = fs::metadata(&host).map_err(failed)?;
            let added = add(&mut all, &metadata, inside, &device.permissions)?;
            if !added {
                return Err(failed(std::io::Error::other("it is no device")));
            }
        }
    }
    Ok(all)
}

fn add_tree(
    all: &mut ContainerDevices,
    host: &Path,
    inside: &Path,
    permissions: &str,
) -> Result<(), SpecError> {
    let mut waiting: Vec<(PathBuf, PathBuf)> = vec![(host.to_owned(), inside.to_owned())];
    while let Some((host, inside)) = waiting.pop() {
        // Devices come and go while this looks.
        for entry in fs::read_dir(&host).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Ok(metadata) = entry.metadata() else { continue };
            let is_own = NOT_SHARED.iter().any(|own| name == *own);
            if metadata.is_dir() && !is_own {
                waiting.push((entry.path(), inside.join(name)));
            } else if all.nodes.len() < MOST_DEVICES {
                add(all, &metadata, &inside.join(name), permissions)?;
            }
        }
    }
    Ok(())
}

fn add(
    all: &mut ContainerDevices,
    metadata: &Metadata,
    inside: &Path,
    permissions: &str,
) -> Result<bool, SpecError> {
    let kind = match metadata.file_type() {
        kind if kind.is_block_device() => LinuxDeviceType::B,
        kind if kind.is_char_device() => LinuxDeviceType::C,
        _ => return Ok(false),
    };
    let number = metadata.rdev();
    let (major, minor) = (i64::from(major(number)), i64::from(minor(number)));
    let node = LinuxDeviceBuilder::default().path(inside).typ(kind).major(major).minor(minor);
    let node = node.file_mode(metadata.mode() & 0o777).uid(metadata.uid()).gid(metadata.gid());
    all.nodes.push(node.build()?);
    let rule = LinuxDeviceCgroupBuilder::default().allow(true).typ(kind).major(major).minor(minor);
    all.rules.push(rule.access(permissions).build()?);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(host: &str) -> Device {
        Device {
            container_path: "/dev/mine".to_owned(),
            host_path: host.to_owned(),
            permissions: "rw".to_owned(),
        }
    }

    #[test]
    fn a_device_is_made_and_allowed() {
        let found = devices(&[device("/dev/null")], false).unwrap();
        assert_eq!(found.nodes.len(), 1);
        assert_eq!((found.nodes[0].major(), found.nodes[0].minor()), (1, 3));
        let allowed: Vec<bool> = found.rules.iter().map(LinuxDeviceCgroup::allow).collect();
        assert_eq!(allowed, [false, true]);
        assert!(devices(&[device("/etc/passwd")], false).is_err());
        assert!(devices(&[device("/dev/none")], false).is_err());
    }

    #[test]
    fn a_privileged_container_has_all_devices() {
        let found = devices(&[], true).unwrap();
        assert!(found.nodes.iter().any(|node| node.path() == Path::new("/dev/null")));
        assert_eq!(found.rules.iter().map(LinuxDeviceCgroup::allow).collect::<Vec<_>>(), [true]);
    }
}
