//! Whether mounts pass between the host and containers: a property of the mount that a volume lies on.

use std::io;

use oarsman_core::cri_spec::PropagatedMount;
use oarsman_host::mounts::{self, Mount};

use crate::VolumeError;

/// The runtime refuses such a container too, and says neither which mount it is nor what to do.
pub(crate) fn check(wanted: &[PropagatedMount]) -> Result<(), VolumeError> {
    let failed = |mount: &PropagatedMount, source| {
        let (volume, path) = (mount.container_path.clone(), mount.host_path.clone());
        VolumeError::System { volume, doing: "look at the mount of", path, source }
    };
    for mount in wanted {
        let table = mounts::current().map_err(|source| failed(mount, source))?;
        let path = mount.host_path.canonicalize().map_err(|source| failed(mount, source))?;
        let missing = || failed(mount, io::ErrorKind::NotFound.into());
        let on = mounts::mount_of(&table, &path).ok_or_else(missing)?;
        check_one(mount, on)?;
    }
    Ok(())
}

fn check_one(wanted: &PropagatedMount, on: &Mount) -> Result<(), VolumeError> {
    let passes = on.is_shared() || (!wanted.is_bidirectional && on.is_slave());
    match passes {
        true => Ok(()),
        false => Err(VolumeError::Propagation {
            mode: if wanted.is_bidirectional { "Bidirectional" } else { "HostToContainer" },
            container_path: wanted.container_path.clone(),
            host_path: wanted.host_path.clone(),
            mount: on.point.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"1 0 8:1 / / rw shared:1 - ext4 /dev/sda rw
2 1 8:2 / /private rw - ext4 /dev/sdb rw
3 1 8:3 / /slave rw master:4 - ext4 /dev/sdc rw
4 2 8:4 / /private/shared rw shared:7 - ext4 /dev/sdd rw
";

    #[test]
    fn a_mount_that_is_not_shared_is_named_with_what_to_do() {
        let table = mounts::parse(TABLE).unwrap();
        let rows = [
            ("/var/lib/kubelet", true, true),
            ("/var/lib/kubelet", true, false),
            ("/private/pods", false, true),
            ("/private/pods", false, false),
            ("/private/shared/x", true, true),
            ("/slave/x", false, true),
            ("/slave/x", true, false),
            ("/privately", true, true),
        ];
        for (path, passes, is_bidirectional) in rows {
            let on = mounts::mount_of(&table, path.as_ref()).unwrap();
            let (container_path, host_path) = ("/data".to_owned(), path.into());
            let wanted = PropagatedMount { container_path, host_path, is_bidirectional };
            let checked = check_one(&wanted, on);
            assert_eq!(checked.is_ok(), passes, "{path} {is_bidirectional}");
            if let Err(error) = checked {
                let text = error.to_string();
                let fix = format!("mount --make-rshared {}", on.point.display());
                assert!(text.contains(&fix) && text.contains("/data"), "{text}");
            }
        }
    }
}
