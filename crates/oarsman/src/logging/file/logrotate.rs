//! Our configuration files for logrotate, run by the real program: the agent continues in the right file, and no line is lost.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use oarsman_clock::SystemClock;

use super::{LogFile, RotationLimits};

const RECIPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/logrotate");
/// The path from the manual page; logrotate is not in every user's PATH.
const LOGROTATE: &str = "/usr/sbin/logrotate";

/// Runs logrotate on the logs of a directory, by one of our configuration files.
fn rotate(recipe: &str, logs: &Path) {
    let text = fs::read_to_string(Path::new(RECIPES).join(recipe)).unwrap();
    assert!(text.contains("/var/log/oarsman/*.log {"), "{text}");
    let logs_here = logs.display().to_string();
    let above = logs.parent().unwrap();
    let (own, state) = (above.join("recipe"), above.join("state"));
    fs::write(&own, text.replace("/var/log/oarsman", &logs_here)).unwrap();
    let done = Command::new(LOGROTATE).arg("--force").arg("--state").arg(state).arg(own).output();
    let done = done.expect("logrotate is missing: apt-get install logrotate");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn write_lines_around_a_rotation(recipe: &str) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("logs/kubelet.log");
    let clock = Arc::new(SystemClock::start());
    let log = LogFile::open(&path, RotationLimits { size: 0, files: 1 }, clock).unwrap();
    log.write_line(b"before\n").unwrap();
    rotate(recipe, path.parent().unwrap());
    // Makes the log check its path again, as it does in the next second.
    log.current.lock().checked = 0;
    log.write_line(b"after\n").unwrap();
    let read = |name: &str| fs::read_to_string(path.with_file_name(name)).unwrap_or_default();
    (read("kubelet.log"), read("kubelet.log.1"))
}

#[test]
fn a_file_that_logrotate_moves_away_is_begun_anew() {
    let files = write_lines_around_a_rotation("oarsman");
    assert_eq!(files, ("after\n".to_owned(), "before\n".to_owned()));
}

#[test]
fn a_file_that_logrotate_truncates_is_written_from_its_beginning() {
    // The old lines are in a compressed copy.
    let (current, _) = write_lines_around_a_rotation("oarsman-copytruncate");
    assert_eq!(current, "after\n");
}
