//! `/proc/self/mountinfo`.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use oarsman_host::cgroups::hierarchies;
use oarsman_host::mounts::{self, Mount};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget = FuzzTarget { name: "mountinfo", max_len: 2048, run, seeds };

fn run(bytes: &[u8]) {
    let Ok(mounts) = mounts::parse(bytes) else { return };
    assert!(mounts.len() <= bytes.len(), "more mounts than bytes");
    assert!(hierarchies(&mounts).len() <= mounts.len(), "more hierarchies than mounts");
    assert!(
        mounts::beneath(&mounts, Path::new("/")).count() <= mounts.len(),
        "mounts from nowhere"
    );
    let written: Vec<u8> = mounts.iter().flat_map(line).collect();
    assert_eq!(mounts::parse(&written).as_ref(), Ok(&mounts), "written and read again");
}

/// As the kernel writes it.
fn line(mount: &Mount) -> Vec<u8> {
    let Mount { id, parent, device, options, fs_type, super_options, .. } = mount;
    let mut line = format!("{id} {parent} {device} ").into_bytes();
    for path in [&mount.root, &mount.point] {
        line.extend(escaped(path.as_os_str().as_bytes()));
        line.push(b' ');
    }
    line.extend(options.as_bytes());
    line.push(b' ');
    for field in &mount.propagation {
        line.extend(field.as_bytes());
        line.push(b' ');
    }
    line.extend(format!("- {fs_type} ").into_bytes());
    line.extend(escaped(mount.source.as_bytes()));
    line.extend(format!(" {super_options}\n").into_bytes());
    line
}

fn escaped(bytes: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| match byte {
        b' ' | b'\t' | b'\n' | b'\\' | b'#' => {
            let mut text = String::new();
            let written = write!(text, "\\{byte:03o}");
            written.map(|()| text.into_bytes()).unwrap_or_default()
        }
        _ => vec![*byte],
    };
    bytes.iter().flat_map(escape).collect()
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "22 1 0:21 / /proc rw,nosuid shared:5 master:3 - proc proc rw\n36 35 98:0 /mnt1 /a\\040b rw - ext4 /dev/root rw,errors=continue\n",
        "30 25 0:26 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup  rw,cpu,cpuacct,name=systemd\n",
    ])
}
