//! The capabilities of a container.

use std::collections::BTreeSet;

use oarsman_cri_types::v1::Capability as CapabilityChanges;
use oci_spec::OciSpecError;
use oci_spec::runtime::{Capabilities, LinuxCapabilities, LinuxCapabilitiesBuilder};

use super::SpecError;

const ALL: &str = "ALL";

/// What a container has when nothing is asked for, as with containerd.
const DEFAULT: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// All that Linux knows; the shim leaves out what this process does not hold.
const KNOWN: [&str; 41] = [
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "AUDIT_WRITE",
    "BLOCK_SUSPEND",
    "BPF",
    "CHECKPOINT_RESTORE",
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "LEASE",
    "LINUX_IMMUTABLE",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "PERFMON",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYSLOG",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_NICE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "WAKE_ALARM",
];

/// The sets of a container: what is added comes before what is dropped, and `ALL` before single ones.
pub(crate) fn sets(
    changes: &CapabilityChanges,
    privileged: bool,
) -> Result<LinuxCapabilities, SpecError> {
    let ambient = names(&changes.add_ambient_capabilities)?;
    let mut set: BTreeSet<&str> =
        if privileged { KNOWN.into() } else { changed(DEFAULT.into(), changes)? };
    set.extend(&ambient);
    Ok(built(&set, &ambient)?)
}

fn changed<'a>(
    mut set: BTreeSet<&'a str>,
    changes: &'a CapabilityChanges,
) -> Result<BTreeSet<&'a str>, SpecError> {
    let (added, dropped) = (names(&changes.add_capabilities)?, names(&changes.drop_capabilities)?);
    if added.contains(ALL) {
        set = KNOWN.into();
    }
    if dropped.contains(ALL) {
        set.clear();
    }
    set.extend(added.into_iter().filter(|name| *name != ALL));
    set.retain(|name| !dropped.contains(name));
    Ok(set)
}

/// Without the prefix that some write.
fn names(given: &[String]) -> Result<BTreeSet<&'static str>, SpecError> {
    let known = |name: &String| {
        let upper = name.to_ascii_uppercase();
        let short = upper.strip_prefix("CAP_").unwrap_or(&upper);
        let mut all = KNOWN.into_iter().chain([ALL]);
        all.find(|known| *known == short)
            .ok_or_else(|| SpecError::Capability { name: name.clone() })
    };
    given.iter().map(known).collect()
}

fn built(
    set: &BTreeSet<&str>,
    ambient: &BTreeSet<&str>,
) -> Result<LinuxCapabilities, OciSpecError> {
    let named = |names: &BTreeSet<&str>| -> Capabilities {
        names.iter().filter_map(|name| name.parse().ok()).collect()
    };
    let set = named(set);
    LinuxCapabilitiesBuilder::default()
        .bounding(set.clone())
        .effective(set.clone())
        .permitted(set)
        // An ambient capability has to be inheritable; without any, nothing is, so that no file of the image gives one.
        .inheritable(named(ambient))
        .ambient(named(ambient))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(add: &[&str], drop: &[&str], ambient: &[&str]) -> CapabilityChanges {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        CapabilityChanges {
            add_capabilities: owned(add),
            drop_capabilities: owned(drop),
            add_ambient_capabilities: owned(ambient),
        }
    }

    #[test]
    fn capabilities_are_added_then_dropped() {
        let rows: [(&[&str], &[&str], bool, usize); 8] = [
            (&[], &[], false, 14),
            (&["NET_ADMIN"], &[], false, 15),
            (&["CAP_NET_ADMIN"], &["net_raw"], false, 14),
            (&[], &["ALL"], false, 0),
            (&["CHOWN"], &["ALL"], false, 1),
            (&["ALL"], &[], false, 41),
            (&["ALL"], &["SYS_ADMIN"], false, 40),
            (&[], &["ALL"], true, 41),
        ];
        for (add, drop, privileged, wanted) in rows {
            let sets = sets(&changes(add, drop, &[]), privileged).unwrap();
            assert_eq!(sets.bounding().as_ref().unwrap().len(), wanted, "{add:?} {drop:?}");
            assert_eq!(sets.effective(), sets.permitted());
            assert_eq!(sets.ambient().as_ref().unwrap().len(), 0);
        }
        assert!(sets(&changes(&["NONSENSE"], &[], &[]), false).is_err());
    }

    #[test]
    fn ambient_capabilities_are_in_every_set() {
        let sets = sets(&changes(&[], &["ALL"], &["NET_BIND_SERVICE"]), false).unwrap();
        for set in [sets.bounding(), sets.permitted(), sets.inheritable(), sets.ambient()] {
            assert_eq!(set.as_ref().unwrap().len(), 1);
        }
    }
}
