//! Records and checkpoints after a kill at any of their writes, and with any bit flipped: they open, and what was there before is there.

use std::fs::{self, File};
use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::ids::PodUid;
use oarsman_crash::{Change, changes, each_flip, kill_at_every_change};
use tokio::runtime::{Builder, Runtime};

use crate::checkpoints::{CheckpointKeys, CheckpointStore, EncryptedCheckpoints};
use crate::pod_files::log_rotation_tests::{kept_lines, numbered_log};
use crate::pod_files::{HostPodFiles, PodFileSettings, PodFiles};
use crate::records::{StatusFiles, StatusRecords};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn status(phase: &str) -> PodStatus {
    PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
}

fn record(root: &Path, pod: &str, phase: &str) {
    let records = StatusFiles::open(root).unwrap();
    let uid = PodUid::from(pod);
    runtime().block_on(records.write_status(&uid, &status(phase), true)).unwrap();
}

/// The phase of a pod whose record can be read.
fn recorded(root: &Path, pod: &str) -> Option<String> {
    let records = StatusFiles::open(root).unwrap();
    let found = runtime().block_on(records.read_status(&PodUid::from(pod))).unwrap();
    found.and_then(|status| status.phase)
}

fn checkpoints(root: &Path) -> EncryptedCheckpoints {
    let keys = CheckpointKeys { credential: None, directory: root.join("keys") };
    EncryptedCheckpoints::open(root, &keys).unwrap()
}

fn checkpoint(root: &Path, name: &str, content: &str) {
    let store = checkpoints(root);
    runtime().block_on(store.write(name, content.as_bytes().to_vec(), true)).unwrap();
}

/// The checkpoints that can be read.
fn read_back(root: &Path) -> Vec<(String, String)> {
    let all = runtime().block_on(checkpoints(root).read_all()).unwrap();
    all.into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect()
}

#[test]
#[ignore = "the child of the test below"]
fn child_replaces_a_record() {
    record(&oarsman_crash::directory(), "a", "Succeeded");
}

#[test]
fn a_record_is_the_old_or_the_new_one_wherever_its_write_was_killed() {
    let prepare = |root: &Path| {
        record(root, "a", "Running");
        record(root, "b", "Failed");
    };
    let child = "crash_tests::child_replaces_a_record";
    let kills = kill_at_every_change(child, prepare, |root, moment| {
        let phase = recorded(root, "a").unwrap();
        assert!(["Running", "Succeeded"].contains(&phase.as_str()), "{moment}: {phase}");
        assert_eq!(recorded(root, "b").as_deref(), Some("Failed"), "{moment}");
        each_flip(root, 16, |root, flip| {
            // A flip in another record or in a remainder leaves this one alone; one in it is found or harmless.
            let (a, b) = (recorded(root, "a"), recorded(root, "b"));
            let whole = (a == Some(phase.clone())) || b.as_deref() == Some("Failed");
            assert!(whole, "{moment}, {flip}: {a:?} {b:?}");
            record(root, "a", "Running");
            assert_eq!(recorded(root, "a").as_deref(), Some("Running"), "{moment}, {flip}");
        });
    });
    assert!(kills >= 8, "killed {kills} times");
}

#[test]
fn a_record_with_any_bit_flipped_is_read_or_set_aside() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), "a", "Running");
    let mut set_aside = 0;
    let flips = each_flip(root.path(), 1, |root, _| {
        let is_gone = recorded(root, "a").is_none();
        set_aside += usize::from(is_gone && root.join("oarsman-statuses/a.broken").exists());
    });
    assert!(flips > 15 && set_aside > 5, "{set_aside} of {flips} are set aside");
}

#[test]
fn a_lasting_record_is_on_the_disk_before_it_has_its_name_and_the_name_after_it() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), "b", "Running");
    let changes = changes("crash_tests::child_replaces_a_record", root.path());
    let at = |call: &str, file: &str| first(&changes, call, file);
    let (content, rename) = (at("fdatasync", "a.json.new"), at("rename", "a.json.new"));
    assert!(at("write", "a.json.new") < content && content < rename, "{changes:#?}");
    assert!(rename < at("fsync", "oarsman-statuses>"), "{changes:#?}");
}

/// The place of the first such call among all changes.
fn first(changes: &[Change], call: &str, file: &str) -> usize {
    let found = changes.iter().position(|it| it.call == call && it.arguments.contains(file));
    found.unwrap_or_else(|| panic!("no {call} of {file}: {changes:#?}"))
}

/// Row H11 of docs/security.md.
#[test]
fn a_checkpoint_is_on_the_disk_before_it_has_its_name_and_the_name_after_it() {
    let root = tempfile::tempdir().unwrap();
    checkpoint(root.path(), "a", "old");
    let changes = changes("crash_tests::child_replaces_a_checkpoint", root.path());
    let at = |call: &str, file: &str| first(&changes, call, file);
    let (content, rename) = (at("fdatasync", "a.sealed.new"), at("rename", "a.sealed.new"));
    assert!(at("write", "a.sealed.new") < content && content < rename, "{changes:#?}");
    assert!(rename < at("fsync", "oarsman-vault"), "{changes:#?}");
}

fn pod_files(root: &Path) -> HostPodFiles {
    let settings = PodFileSettings {
        root: root.join("root"),
        pod_logs: root.join("logs"),
        container_logs: None,
    };
    HostPodFiles::open(settings).unwrap()
}

fn rotate(root: &Path) {
    let (files, log) = (pod_files(root), numbered_log());
    runtime().block_on(async {
        files.rotate_log(&log, 5, Timestamp::UNIX_EPOCH).await.unwrap();
        fs::write(root.join("logs").join(log.directory()).join("0.log"), "").unwrap();
        files.compress_logs(&log).await.unwrap();
    });
}

#[test]
#[ignore = "the child of the test below"]
fn child_rotates_a_log() {
    rotate(&oarsman_crash::directory());
}

#[test]
fn every_line_of_a_log_is_there_once_wherever_its_rotation_was_killed() {
    let directory = |root: &Path| root.join("logs").join(numbered_log().directory());
    let prepare = |root: &Path| {
        fs::create_dir_all(directory(root)).unwrap();
        for (name, line) in [("0.log", "3\n"), ("0.log.20200102-000000", "2\n")] {
            fs::write(directory(root).join(name), line).unwrap();
        }
        fs::write(directory(root).join("0.log.20200101-000000"), "1\n").unwrap();
    };
    let kills =
        kill_at_every_change("crash_tests::child_rotates_a_log", prepare, |root, moment| {
            assert_eq!(kept_lines(&directory(root), "0.log"), ["1", "2", "3"], "{moment}");
            // The runtime opens the log again where that was cut off.
            File::options().append(true).create(true).open(directory(root).join("0.log")).unwrap();
            rotate(root);
            assert_eq!(kept_lines(&directory(root), "0.log"), ["1", "2", "3"], "{moment}, again");
            let names = fs::read_dir(directory(root)).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let unfinished: Vec<String> = names.filter(|name| name.ends_with(".tmp")).collect();
            assert!(unfinished.is_empty(), "{moment}: {unfinished:?}");
        });
    assert!(kills >= 8, "killed {kills} times");
}

#[test]
#[ignore = "the child of the test below"]
fn child_removes_a_checkpoint() {
    let store = checkpoints(&oarsman_crash::directory());
    runtime().block_on(store.remove("a")).unwrap();
}

/// Row H11 of docs/security.md.
#[test]
fn a_checkpoint_that_was_removed_does_not_come_back_with_a_power_cut() {
    let root = tempfile::tempdir().unwrap();
    checkpoint(root.path(), "a", "old");
    let changes = changes("crash_tests::child_removes_a_checkpoint", root.path());
    let removed = first(&changes, "unlink", "a.sealed");
    assert!(removed < first(&changes, "fsync", "oarsman-vault"), "{changes:#?}");
}

#[test]
#[ignore = "the child of the test below"]
fn child_replaces_a_checkpoint() {
    checkpoint(&oarsman_crash::directory(), "a", "new");
}

#[test]
fn a_checkpoint_is_the_old_or_the_new_one_wherever_its_write_was_killed() {
    let prepare = |root: &Path| {
        checkpoint(root, "a", "old");
        checkpoint(root, "b", "other");
    };
    let child = "crash_tests::child_replaces_a_checkpoint";
    let kills = kill_at_every_change(child, prepare, |root, moment| {
        let found = read_back(root);
        let [(_, a), (_, b)] = found.as_slice() else { panic!("{moment}: {found:?}") };
        assert!(["old", "new"].contains(&a.as_str()) && b == "other", "{moment}: {found:?}");
    });
    assert!(kills >= 8, "killed {kills} times");
}

#[test]
fn the_first_checkpoint_and_its_key_survive_a_kill_at_any_write() {
    let child = "crash_tests::child_replaces_a_checkpoint";
    let kills = kill_at_every_change(
        child,
        |_| {},
        |root, moment| {
            let found = read_back(root);
            let is_whole = found.is_empty() || found == [("a".to_owned(), "new".to_owned())];
            assert!(is_whole, "{moment}: {found:?}");
            checkpoint(root, "a", "next");
            assert_eq!(read_back(root), [("a".to_owned(), "next".to_owned())], "{moment}");
        },
    );
    assert!(kills >= 8, "killed {kills} times");
}

#[test]
fn of_checkpoints_with_any_bit_flipped_only_whole_ones_are_read() {
    let root = tempfile::tempdir().unwrap();
    checkpoint(root.path(), "a", "one");
    checkpoint(root.path(), "b", "two");
    let whole = read_back(root.path());
    // The name of the key's file is made of the path of the root directory: it goes with a copy.
    let key = fs::read_dir(root.path().join("keys")).unwrap().next().unwrap().unwrap().path();
    let flips = each_flip(root.path(), 1, |copy, flip| {
        let keys = CheckpointKeys { credential: None, directory: copy.join("keys") };
        let of_copy = copy.join("keys").join(key.file_name().unwrap());
        fs::rename(of_copy, keys.path(copy)).unwrap();
        let found = read_back(copy);
        assert!(found.len() < 2 && found.iter().all(|it| whole.contains(it)), "{flip}: {found:?}");
        checkpoint(copy, "c", "three");
        assert!(read_back(copy).iter().any(|(name, _)| name == "c"), "{flip}");
    });
    assert!(flips > 60, "{flips}");
}
