//! Checks free disk space, inodes, mount options and memory.

use crate::check::facts::disk::{DirectoryFacts, MemoryFacts};
use crate::check::finding::Finding;

const MIB: u64 = 1 << 20;
/// In bytes: below this little can be written at all.
const NOTHING_LEFT: u64 = 100 * MIB;
/// Where a kubelet starts to evict pods, by default, in percent.
const FEW_BYTES: u64 = 10;
const FEW_INODES: u64 = 5;
/// Where a kubelet starts to evict pods, by default.
const LITTLE_MEMORY: u64 = 100 * MIB;

pub(super) fn evaluate(directories: &[DirectoryFacts], memory: MemoryFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, directory) in directories.iter().enumerate() {
        // Directories of one file system share its space, so one finding is enough.
        if !directories[..number].iter().any(|other| other.mount_point == directory.mount_point) {
            findings.push(free_space(directory));
        }
        findings.extend(options(directory));
    }
    findings.extend(self::memory(memory));
    findings
}

fn free_space(directory: &DirectoryFacts) -> Finding {
    const CHECK: &str = "disk";
    let (what, path) = (directory.what, directory.path.display());
    let (bytes, inodes) = (directory.bytes.percent_free(), directory.inodes.percent_free());
    let free = directory.bytes.free / MIB;
    let fix = format!(
        "make room on {0} (what takes it: du -xh --max-depth=2 {0} | sort -h | tail), or use another file system",
        directory.mount_point.display()
    );
    if directory.bytes.free < NOTHING_LEFT
        || (directory.inodes.all > 0 && directory.inodes.free == 0)
    {
        let what = format!("{what} {path}: {free} MiB and {inodes} % of the inodes are free");
        return Finding::problem(CHECK, what, fix);
    }
    if bytes < FEW_BYTES || inodes < FEW_INODES {
        let what = format!(
            "{what} {path}: {bytes} % of the room and {inodes} % of the inodes are free; a kubelet evicts pods below \
             {FEW_BYTES} % and {FEW_INODES} %"
        );
        return Finding::warning(CHECK, what, fix);
    }
    Finding::ok(CHECK, format!("{what} {path}: {free} MiB ({bytes} %) are free"))
}

/// Findings about mount options that pods cannot work with.
fn options(directory: &DirectoryFacts) -> Vec<Finding> {
    const CHECK: &str = "mount options";
    let point = directory.mount_point.display();
    let remount =
        |option: &str| format!("mount -o remount,{option} {point}, and change /etc/fstab");
    let has = |option: &str| directory.options.iter().any(|there| there == option);
    let mut findings = Vec::new();
    if has("ro") {
        let what = format!("{point}, for the {}, is mounted read-only", directory.what);
        findings.push(Finding::problem(CHECK, what, remount("rw")));
    }
    if directory.what != "root directory" {
        return findings;
    }
    if has("noexec") {
        let what = format!("{point} is mounted noexec: nothing in an emptyDir can be executed");
        findings.push(Finding::warning(CHECK, what, remount("exec")));
    }
    if has("nodev") {
        let what = format!("{point} is mounted nodev: device files in volumes cannot be opened");
        findings.push(Finding::warning(CHECK, what, remount("dev")));
    }
    findings
}

fn memory(memory: MemoryFacts) -> Option<Finding> {
    const CHECK: &str = "memory";
    let (total, available) = (memory.total?, memory.available?);
    let what = format!("{} MiB of {} MiB are available", available / MIB, total / MIB);
    if available >= LITTLE_MEMORY {
        return Some(Finding::ok(CHECK, what));
    }
    Some(Finding::warning(
        CHECK,
        format!("{what}; a kubelet evicts pods below {} MiB", LITTLE_MEMORY / MIB),
        "stop what needs much of it: ps aux --sort=-rss | head",
    ))
}
