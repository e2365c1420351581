//! Which changes of a directory are reported. The kernel queues an event before the call that made it returns, so no test has to wait.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::{TempDir, tempdir};

use super::*;

fn watching(only: Option<&str>) -> (TempDir, Inotify) {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("old"), "").unwrap();
    let mut watcher = Inotify::new().unwrap();
    watcher.watch(directory.path(), only.map(OsStr::new)).unwrap();
    (directory, watcher)
}

type Change = fn(&Path);

#[test]
fn every_kind_of_change_is_reported_once() {
    let rows: [(&str, Change); 7] = [
        ("written", |at| fs::write(at.join("new"), "a").unwrap()),
        ("written again", |at| fs::write(at.join("old"), "b").unwrap()),
        ("linked", |at| symlink("/nowhere", at.join("link")).unwrap()),
        ("renamed", |at| fs::rename(at.join("old"), at.join("renamed")).unwrap()),
        ("removed", |at| fs::remove_file(at.join("old")).unwrap()),
        ("made", |at| fs::create_dir(at.join("directory")).unwrap()),
        ("permitted", |at| {
            fs::set_permissions(at.join("old"), fs::Permissions::from_mode(0o600)).unwrap();
        }),
    ];
    for (name, change) in rows {
        let (directory, mut watcher) = watching(None);
        assert!(!watcher.drain().unwrap(), "{name}: nothing yet");
        change(directory.path());
        assert!(watcher.drain().unwrap(), "{name}");
        assert!(!watcher.drain().unwrap(), "{name}: only once");
    }
}

#[test]
fn reading_is_no_change() {
    let (directory, mut watcher) = watching(None);
    fs::read(directory.path().join("old")).unwrap();
    fs::read_dir(directory.path()).unwrap().count();
    assert!(!watcher.drain().unwrap());
}

#[test]
fn only_changes_of_the_given_name_are_reported() {
    let (directory, mut watcher) = watching(Some("mine"));
    fs::write(directory.path().join("other"), "").unwrap();
    assert!(!watcher.drain().unwrap());
    fs::write(directory.path().join("mine"), "").unwrap();
    assert!(watcher.drain().unwrap());
}

#[test]
fn a_burst_that_overflows_the_buffer_is_one_change() {
    let (directory, mut watcher) = watching(None);
    for i in 0..500 {
        fs::write(directory.path().join(format!("{i:0>200}")), "").unwrap();
    }
    assert!(watcher.drain().unwrap());
    assert!(!watcher.drain().unwrap());
}

#[test]
fn a_directory_that_took_the_path_of_another_is_watched_in_its_place() {
    let (outer, mut watcher) = watching(None);
    let (path, aside) = (outer.path().join("pods"), outer.path().join("aside"));
    fs::create_dir(&path).unwrap();
    watcher.watch(&path, None).unwrap();
    assert!(!watcher.drain().unwrap(), "the outer one is not watched any more");
    fs::rename(&path, &aside).unwrap();
    assert!(watcher.drain().unwrap(), "moved away");
    fs::create_dir(&path).unwrap();
    watcher.watch(&path, None).unwrap();
    fs::write(aside.join("a"), "").unwrap();
    assert!(!watcher.drain().unwrap(), "the one before does not count");
    fs::write(path.join("a"), "").unwrap();
    assert!(watcher.drain().unwrap());
    fs::remove_dir_all(&path).unwrap();
    assert!(watcher.drain().unwrap(), "gone");
    fs::create_dir(&path).unwrap();
    watcher.watch(&path, None).unwrap();
    fs::write(path.join("a"), "").unwrap();
    assert!(watcher.drain().unwrap(), "back");
}

#[test]
fn what_is_no_directory_cannot_be_watched() {
    let (directory, mut watcher) = watching(None);
    assert!(watcher.watch(&directory.path().join("old"), None).is_err());
    assert!(watcher.watch(&directory.path().join("none"), None).is_err());
    fs::write(directory.path().join("a"), "").unwrap();
    assert!(!watcher.drain().unwrap(), "nothing is watched any more");
}

#[tokio::test]
async fn a_watcher_waits_for_relevant_changes_and_reports_earlier_ones() {
    let directory = tempdir().unwrap();
    let mut listener = AsyncInotify::new().unwrap();
    listener.watch(directory.path(), Some(OsStr::new("mine"))).unwrap();
    fs::write(directory.path().join("mine"), "").unwrap();
    listener.changed().await.unwrap();
    let path = directory.path().to_owned();
    let writer = async move {
        fs::write(path.join("other"), "").unwrap();
        tokio::task::yield_now().await;
        fs::write(path.join("mine"), "").unwrap();
    };
    let (heard, ()) = tokio::join!(listener.changed(), writer);
    heard.unwrap();
}

#[test]
fn writes_are_reported_only_on_request() {
    for wanted in [false, true] {
        let directory = tempdir().unwrap();
        let mut file = fs::File::create(directory.path().join("log")).unwrap();
        let watcher = Inotify::new().unwrap();
        let mut watcher = if wanted { watcher.with_writes() } else { watcher };
        watcher.watch(directory.path(), None).unwrap();
        io::Write::write_all(&mut file, b"a line\n").unwrap();
        assert_eq!(watcher.drain().unwrap(), wanted);
    }
}
