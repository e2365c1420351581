//! Reads the machine's facts for the Node object.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use oarsman_core::node::{MachineInfo, go_architecture};
use oarsman_core::resources::hugepages::size_of_directory;

use super::{cpus, meminfo};

const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";
const HUGEPAGES: &str = "/sys/kernel/mm/hugepages";
/// The files with the id of the installation, in order of preference.
const MACHINE_ID: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/// The files with the id of the hardware, in order of preference; the last is the id of the installation.
const SYSTEM_UUID: [&str; 4] = [
    "/sys/class/dmi/id/product_uuid",
    "/proc/device-tree/system-id",
    "/proc/device-tree/vm,uuid",
    "/etc/machine-id",
];
const BOOT_ID: [&str; 1] = ["/proc/sys/kernel/random/boot_id"];
const OS_RELEASE: [&str; 2] = ["/etc/os-release", "/usr/lib/os-release"];

/// All facts; what cannot be read stays empty. Pods' directories lie below `root`.
pub(crate) fn read(root: &Path) -> MachineInfo {
    MachineInfo {
        cpus: cores(),
        memory: meminfo("MemTotal:").unwrap_or_default(),
        swap: meminfo("SwapTotal:").unwrap_or_default(),
        disk: disk(root),
        hugepages: hugepages(HUGEPAGES.as_ref()),
        machine_id: first_of(&MACHINE_ID),
        system_uuid: first_of(&SYSTEM_UUID),
        boot_id: first_of(&BOOT_ID),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        os_image: os_image(&first_of(&OS_RELEASE)),
        architecture: go_architecture(std::env::consts::ARCH).to_owned(),
    }
}

/// All CPUs of the machine, also those that this process may not run on.
fn cores() -> u32 {
    let listed = fs::read_to_string(CPUS_ONLINE).ok().and_then(|list| cpus::count(list.trim()));
    let allowed = || std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    listed.unwrap_or_else(|| u32::try_from(allowed()).unwrap_or(u32::MAX))
}

/// The size of the file system that a directory lies on, or will lie on once it is there.
fn disk(directory: &Path) -> Option<u64> {
    let there = directory.ancestors().find(|path| path.exists())?;
    let room = rustix::fs::statvfs(there).ok()?;
    Some(room.f_blocks.saturating_mul(room.f_frsize))
}

/// The number of huge pages of each size.
fn hugepages(directory: &Path) -> BTreeMap<u64, u64> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let counted = entries.filter_map(|entry| {
        let size = size_of_directory(entry.file_name().to_str()?)?;
        let count = fs::read_to_string(entry.path().join("nr_hugepages")).ok()?;
        Some((size, count.trim().parse().ok()?))
    });
    counted.collect()
}

/// The content of the first of these files that has any.
fn first_of(paths: &[&str]) -> String {
    let texts = paths.iter().filter_map(|path| fs::read_to_string(path).ok());
    let mut texts = texts.map(|text| text.trim_end_matches('\0').trim().to_owned());
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

/// The name of the distribution: PRETTY_NAME of os-release.
fn os_image(os_release: &str) -> String {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or("Linux", |name| name.trim().trim_matches(['"', '\''])).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_os_image_is_the_pretty_name_of_os_release() {
        let rows = [
            (
                "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nID=d",
                "Debian GNU/Linux 13 (trixie)",
            ),
            ("PRETTY_NAME='Alpine'", "Alpine"),
            ("PRETTY_NAME=Arch", "Arch"),
            ("NAME=x", "Linux"),
            ("", "Linux"),
        ];
        for (text, expected) in rows {
            assert_eq!(os_image(text), expected);
        }
    }

    #[test]
    fn huge_pages_are_counted_by_size() {
        let directory = tempfile::tempdir().unwrap();
        for (name, count) in
            [("hugepages-2048kB", "3\n"), ("hugepages-1048576kB", "0\n"), ("other", "9")]
        {
            let pages = directory.path().join(name);
            fs::create_dir(&pages).unwrap();
            fs::write(pages.join("nr_hugepages"), count).unwrap();
        }
        assert_eq!(hugepages(directory.path()), BTreeMap::from([(2 << 20, 3), (1 << 30, 0)]));
        assert_eq!(hugepages(&directory.path().join("none")), BTreeMap::new());
    }

    #[test]
    fn this_machine_has_cores_memory_and_a_disk() {
        let machine = read("/var/lib/that/is/not/there".as_ref());
        assert!(machine.cpus > 0 && machine.memory > 0 && machine.disk > Some(0), "{machine:?}");
        assert!(!machine.boot_id.is_empty() && !machine.kernel.is_empty(), "{machine:?}");
    }
}
