//! Which devices a container may use. Where control groups have one tree for all controllers (v2), libcontainer 0.7 leaves this to a C library that we
//! do not have, so that it is done here; where devices have a tree (v1), it writes the rules.

use std::path::Path;

use oarsman_host::cgroups::{Hierarchy, HierarchyKind, hierarchies};
use oarsman_host::device_control::{self, DeviceAccess, DeviceKind, DeviceRule};
use oarsman_host::mounts;
use oci_spec::runtime::{LinuxDeviceCgroup, LinuxDeviceType, Spec};

use super::HelperError;

#[cfg(test)]
mod tests;

/// What every container may use beside what its spec says, as in runc and in libcontainer's v1: nodes of all devices can be made, and the devices that
/// every container has can be used. Each is a major and a minor number.
const BASIC: [(i32, Option<i32>); 10] = [
    // /dev/null, /dev/zero, /dev/full, /dev/random, /dev/urandom
    (1, Some(3)),
    (1, Some(5)),
    (1, Some(7)),
    (1, Some(8)),
    (1, Some(9)),
    // /dev/tty, /dev/console, /dev/ptmx, /dev/pts
    (5, Some(0)),
    (5, Some(1)),
    (5, Some(2)),
    (136, None),
    // /dev/net/tun
    (10, Some(200)),
];

/// Has the kernel control the devices of a container that was made and not started, by the process that it is yet.
pub(super) fn control(spec: &Spec, pid: u32) -> Result<(), HelperError> {
    let mounts = mounts::current().map_err(HelperError::io("cannot read the mounts"))?;
    let group = spec.linux().as_ref().and_then(|linux| linux.cgroups_path().as_deref());
    let group =
        group.ok_or_else(|| HelperError::Invalid("the spec names no control group".into()))?;
    let all = hierarchies(&mounts);
    let tree = controlling(&all, group, pid).ok_or_else(|| {
        HelperError::Invalid(format!(
            "nothing controls its devices: its process is in {} neither where devices have a tree (v1) nor in the tree of version 2",
            group.display()
        ))
    })?;
    match tree.kind {
        HierarchyKind::V1(_) => Ok(()),
        HierarchyKind::V2 => Ok(device_control::apply(&tree.directory(group), &rules(spec)?)?),
    }
}

/// The tree whose group of the container has its process, and can control its devices. That a tree is mounted does not mean that libcontainer uses it.
fn controlling<'a>(all: &'a [Hierarchy], group: &Path, pid: u32) -> Option<&'a Hierarchy> {
    let holds = |tree: &&Hierarchy| tree.processes(group).is_ok_and(|all| all.contains(&pid));
    let v1 = all.iter().filter(|tree| device_control::has_controller(tree));
    let v2 = all.iter().filter(|tree| tree.kind == HierarchyKind::V2);
    v1.chain(v2).find(holds)
}

/// The rules of a spec, and then those that all containers have.
fn rules(spec: &Spec) -> Result<Vec<DeviceRule>, HelperError> {
    let resources = spec.linux().as_ref().and_then(|linux| linux.resources().as_ref());
    let asked = resources.and_then(|resources| resources.devices().as_ref());
    let asked = asked.into_iter().flatten().map(|one| rule(one).ok_or_else(|| invalid(one)));
    asked.chain(basic_rules().map(Ok)).collect()
}

fn invalid(rule: &LinuxDeviceCgroup) -> HelperError {
    HelperError::Invalid(format!("there is no such rule for devices: {rule}"))
}

fn rule(asked: &LinuxDeviceCgroup) -> Option<DeviceRule> {
    let allow = asked.allow();
    let kind = match asked.typ().unwrap_or_default() {
        // As in v1, whatever else it says.
        LinuxDeviceType::A => return Some(DeviceRule::about_everything(allow)),
        LinuxDeviceType::B => DeviceKind::Block,
        LinuxDeviceType::C | LinuxDeviceType::U => DeviceKind::Character,
        LinuxDeviceType::P => return None,
    };
    Some(DeviceRule {
        allow,
        kind: Some(kind),
        major: number(asked.major()).ok()?,
        minor: number(asked.minor()).ok()?,
        access: DeviceAccess::parse(asked.access().as_deref().unwrap_or_default())?,
    })
}

/// None for all numbers, which is also what a negative one stands for.
fn number(asked: Option<i64>) -> Result<Option<i32>, std::num::TryFromIntError> {
    asked.filter(|number| *number >= 0).map(i32::try_from).transpose()
}

fn basic_rules() -> impl Iterator<Item = DeviceRule> {
    let rule = |kind, major, minor, access| {
        let (allow, kind) = (true, Some(kind));
        DeviceRule { allow, kind, major, minor, access }
    };
    let nodes = [DeviceKind::Character, DeviceKind::Block]
        .map(|kind| rule(kind, None, None, DeviceAccess::MAKE_NODE));
    let used = BASIC
        .map(|(major, minor)| rule(DeviceKind::Character, Some(major), minor, DeviceAccess::ALL));
    nodes.into_iter().chain(used)
}
