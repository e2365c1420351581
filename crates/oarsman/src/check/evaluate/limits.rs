//! Checks the limits of open files and of inotify.

use super::kernel::sysctl;
use crate::check::facts::limits::LimitFacts;
use crate::check::finding::Finding;

const CHECK: &str = "limits";
/// Enough for an agent with hundreds of pods.
const OPEN_FILES: u64 = 8_192;
/// Enough for a few dozen containers that each watch files.
const INSTANCES: i64 = 128;
const WATCHES: i64 = 8_192;

pub(super) fn evaluate(limits: LimitFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(few) = limits.open_files.filter(|few| *few < OPEN_FILES) {
        findings.push(Finding::warning(
            CHECK,
            format!("a process may open {few} files only"),
            "ulimit -n 1048576, or LimitNOFILE=1048576 in the unit",
        ));
    }
    let watches = [
        (limits.inotify_instances, INSTANCES, "fs/inotify/max_user_instances", 512),
        (limits.inotify_watches, WATCHES, "fs/inotify/max_user_watches", 524_288),
    ];
    for (found, enough, path, better) in watches {
        if let Some(few) = found.filter(|few| *few < enough) {
            let name = path.replace('/', ".");
            let what = format!(
                "{name} is {few}: containers that watch files fail with \"too many open files\""
            );
            findings.push(Finding::warning(CHECK, what, sysctl(path, better)));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, "files and watches enough may be open"));
    }
    findings
}
