//! Faults for tests of what must survive them: a process that is killed before any of its changes to files, bits that flip on the disk,
//! and a file system that hangs.
//!
//! A test names another test of its own binary, which is marked `#[ignore]` and makes the changes in [`directory`]. That one runs as
//! a child under strace, which kills it before the n-th call of one kind, for every kind of call that changes files and every n, until
//! it runs to its end. Real system calls are counted: nothing is built into the code that is tested.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic, also in its helpers"
)]

mod bits;
mod hung_mount;
mod trace;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub use bits::{copy_tree, each_flip};
pub use hung_mount::{EndingMount, HungMount};
use trace::changed_paths;
pub use trace::{Change, changes};

/// Names the directory of the child.
const DIRECTORY: &str = "OARSMAN_CRASH_DIRECTORY";
/// The greatest number of calls of one kind, so that a child which is always killed fails the test.
const MOST_CALLS: usize = 500;

/// The calls that change files and mounts.
const CALLS: [&str; 27] = [
    "chmod",
    "fchmod",
    "fchmodat",
    "chown",
    "fchown",
    "fchownat",
    "lchown",
    "fdatasync",
    "fsync",
    "ftruncate",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "mount",
    "move_mount",
    "openat",
    "openat2",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "symlink",
    "umount2",
    "unlink",
    "unlinkat",
    "write",
];

/// The directory in which the child makes its changes.
///
/// # Panics
/// When this is no child.
pub fn directory() -> PathBuf {
    std::env::var_os(DIRECTORY).expect("only for children of kill_at_every_change").into()
}

/// Runs the test `child` of this binary once for each of its changes, killed just before it, in a directory that `prepare` fills;
/// `examine` gets what is left, and a name for the moment. Returns how often it was killed.
///
/// # Panics
/// When the child fails other than by being killed.
pub fn kill_at_every_change(
    child: &str,
    mut prepare: impl FnMut(&Path),
    mut examine: impl FnMut(&Path, &str),
) -> usize {
    // Always the same directory: its path may be in the names of files.
    let base = tempfile::tempdir().unwrap();
    let place = base.path().join("place");
    let mut fresh = || {
        if place.exists() {
            fs::remove_dir_all(&place).unwrap();
        }
        fs::create_dir(&place).unwrap();
        prepare(&place);
    };
    fresh();
    let paths = changed_paths(&changes(child, &place), &place);
    let mut kills = 0;
    for call in CALLS {
        for number in 1..=MOST_CALLS {
            assert!(number < MOST_CALLS, "{child} is killed at every {call}");
            fresh();
            let is_killed = run_and_kill(child, &place, call, number, &paths);
            examine(&place, &format!("{child} before {call} number {number}"));
            if !is_killed {
                break;
            }
            kills += 1;
        }
    }
    kills
}

/// Whether the child was killed; else it ran to its end. Each thread counts its own calls: only those that change the directory are
/// counted, so that what the test harness prints is none of them.
fn run_and_kill(child: &str, place: &Path, call: &str, number: usize, paths: &[String]) -> bool {
    let inject = format!("inject={call}:signal=KILL:when={number}");
    let mut options = vec!["-e", &inject, "-o", "/dev/null"];
    options.extend(paths.iter().flat_map(|path| ["-P", path.as_str()]));
    let output = strace(child, place, &options);
    let is_killed = output.status.signal() == Some(9);
    assert!(is_killed || output.status.success(), "{child}: {output:?}");
    is_killed
}

/// The child under strace.
fn strace(child: &str, place: &Path, options: &[&str]) -> Output {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e"]).arg(format!("trace={}", CALLS.join(",")));
    command.args(options).arg(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(DIRECTORY, place);
    command.output().expect("strace is missing: apt-get install strace")
}
