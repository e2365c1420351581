//! Log files that grow, are rotated, and follow each other.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use tempfile::{TempDir, tempdir};

use super::*;

struct LogFixture {
    directory: TempDir,
}

impl LogFixture {
    fn new() -> Self {
        Self { directory: tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn open(&self, name: &str) -> File {
        File::options().create(true).append(true).open(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        self.open(name).write_all(text.as_bytes()).unwrap();
    }

    fn compress(&self, name: &str) {
        let packed = File::create(self.path(&format!("{name}.gz"))).unwrap();
        let mut packed = GzEncoder::new(packed, Compression::fast());
        packed.write_all(&fs::read(self.path(name)).unwrap()).unwrap();
        packed.finish().unwrap();
        fs::remove_file(self.path(name)).unwrap();
    }

    fn follower(&self, tail: Option<usize>) -> LogFollower {
        LogFollower::at_last(self.directory.path(), tail).unwrap().unwrap()
    }
}

fn read(follower: &mut LogFollower) -> Vec<String> {
    let mut seen = Vec::new();
    let mut each = |line: &[u8]| {
        seen.push(String::from_utf8_lossy(line).into_owned());
        Ok(())
    };
    follower.read(&mut each).unwrap();
    seen
}

#[test]
fn what_is_written_is_read_once_and_only_when_the_line_is_whole() {
    let log = LogFixture::new();
    log.write("0.log", "one\ntwo\n");
    let mut follower = log.follower(Some(1));
    assert_eq!(read(&mut follower), ["two"]);
    assert_eq!(read(&mut follower), [""; 0]);
    log.write("0.log", "thr");
    assert_eq!(read(&mut follower), [""; 0]);
    log.write("0.log", "ee\nfour\n");
    assert_eq!(read(&mut follower), ["three", "four"]);
}

#[test]
fn over_a_rotation_nothing_is_lost_and_nothing_comes_twice() {
    let log = LogFixture::new();
    log.write("0.log", "one\n");
    let mut follower = log.follower(None);
    assert_eq!(read(&mut follower), ["one"]);
    let mut writer = log.open("0.log");
    fs::rename(log.path("0.log"), log.path("0.log.20260101-000000")).unwrap();
    writer.write_all(b"two\n").unwrap();
    assert_eq!(read(&mut follower), ["two"], "the file has gone, and its writer has not noticed");
    log.write("0.log", "");
    writer.write_all(b"three\n").unwrap();
    assert_eq!(read(&mut follower), ["three"], "the new file is there, and is not written to yet");
    writer.write_all(b"four\n").unwrap();
    log.write("0.log", "five\n");
    assert_eq!(read(&mut follower), ["four", "five"]);
    log.write("0.log", "six\n");
    assert_eq!(read(&mut follower), ["six"]);
}

#[test]
fn a_slow_reader_reads_all_files_that_were_rotated_meanwhile() {
    for compressed in [0, 1, 2] {
        let log = LogFixture::new();
        let rotate = |number: u32| {
            fs::rename(log.path("0.log"), log.path(&format!("0.log.20260101-00000{number}")))
        };
        log.write("0.log", "earlier\n");
        rotate(0).unwrap();
        log.write("0.log", "one\n");
        let mut follower = log.follower(None);
        assert_eq!(read(&mut follower), ["one"]);
        log.write("0.log", "two\n");
        for (number, text) in [(1, "three\n"), (2, "four\n"), (3, "five\n")] {
            rotate(number).unwrap();
            log.write("0.log", text);
        }
        for number in (0..=2).take(compressed + 1).skip(usize::from(compressed == 0)) {
            log.compress(&format!("0.log.20260101-00000{number}"));
        }
        let want = ["two", "three", "four", "five"];
        assert_eq!(read(&mut follower), want, "{compressed} of them are compressed");
        rotate(4).unwrap();
        log.write("0.log", "six\n");
        assert_eq!(read(&mut follower), ["six"]);
    }
}

#[test]
fn a_reader_goes_on_with_what_is_left_when_its_file_has_been_removed() {
    let log = LogFixture::new();
    log.write("0.log", "one\n");
    let mut follower = log.follower(None);
    fs::rename(log.path("0.log"), log.path("0.log.20260101-000001")).unwrap();
    log.write("0.log.20260101-000002", "lost\n");
    log.write("0.log.20260101-000003", "three\n");
    log.write("0.log", "four\n");
    for removed in ["0.log.20260101-000001", "0.log.20260101-000002"] {
        fs::remove_file(log.path(removed)).unwrap();
    }
    assert_eq!(read(&mut follower), ["one", "three", "four"]);
}

#[test]
fn restarts_are_followed_one_after_the_other_also_those_that_were_missed() {
    let log = LogFixture::new();
    log.write("3.log", "one\n");
    let mut follower = log.follower(None);
    assert_eq!(read(&mut follower), ["one"]);
    log.write("3.log", "last words");
    log.write("4.log", "two\n");
    log.write("5.log", "three\n");
    assert_eq!(read(&mut follower), ["last words", "two", "three"]);
    fs::remove_file(log.path("5.log")).unwrap();
    log.write("6.log", "four\n");
    assert_eq!(read(&mut follower), ["four"]);
}

#[test]
fn a_container_that_was_never_started_has_no_log() {
    let directory = tempdir().unwrap();
    assert!(LogFollower::at_last(directory.path(), None).unwrap().is_none());
    assert!(LogFollower::at_last(&directory.path().join("none"), None).unwrap().is_none());
}

#[test]
fn a_single_log_is_read_with_its_unfinished_end_and_without_what_follows() {
    let log = LogFixture::new();
    log.write("0.log", "one\ntw");
    log.write("1.log", "other\n");
    let mut seen = Vec::new();
    let mut first = LogFollower::at(log.directory.path(), 0, None).unwrap();
    first
        .read_one(&mut |line| {
            seen.push(line.to_vec());
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, [&b"one"[..], b"tw"]);
}

#[test]
fn one_start_is_followed_over_a_rotation_and_not_into_the_next() {
    let log = LogFixture::new();
    log.write("0.log", "one\n");
    let mut follower = log.follower(None);
    let mut read = |is_over| {
        let mut seen = Vec::new();
        let mut each = |line: &[u8]| {
            seen.push(String::from_utf8_lossy(line).into_owned());
            Ok(())
        };
        while follower.read_start(is_over, &mut each).unwrap() == ReadProgress::More {}
        seen
    };
    assert_eq!(read(false), ["one"]);
    fs::rename(log.path("0.log"), log.path("0.log.20260101-000000")).unwrap();
    log.write("0.log", "two\nthr");
    log.write("1.log", "other\n");
    assert_eq!(read(false), ["two"]);
    assert_eq!(read(true), ["thr"]);
}

#[test]
fn the_log_of_the_greatest_number_has_no_next_one() {
    let log = LogFixture::new();
    log.write("0.log", "zero\n");
    log.write("4294967295.log", "last\n");
    let mut follower = log.follower(None);
    assert_eq!(read(&mut follower), ["last"]);
    assert_eq!(read(&mut follower), [""; 0], "it does not begin again with 0.log");
}

/// Opens in a thread of its own, which a pipe without a writer would keep for ever.
fn open_within_seconds(directory: &Path) -> io::Result<Option<LogFollower>> {
    let (sender, receiver) = mpsc::channel();
    let directory = directory.to_owned();
    thread::spawn(move || sender.send(LogFollower::at_last(&directory, None)).is_ok());
    receiver.recv_timeout(Duration::from_secs(5)).unwrap_or_else(|_| panic!("it hangs"))
}

/// Puts something where a log is expected.
type MakeFile<'a> = &'a dyn Fn(&Path);

#[test]
fn a_log_that_is_a_link_a_pipe_a_device_or_a_directory_is_refused() {
    let secret = tempdir().unwrap();
    fs::write(secret.path().join("0.log"), "2026-01-01T00:00:00Z stdout F secret\n").unwrap();
    let make: [(&str, MakeFile<'_>); 4] = [
        ("link", &|path| symlink(secret.path().join("0.log"), path).unwrap()),
        ("pipe", &|path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap()),
        ("device", &|path| {
            mknodat(CWD, path, FileType::CharacterDevice, Mode::RWXU, makedev(1, 5)).unwrap();
        }),
        ("directory", &|path| fs::create_dir(path).unwrap()),
    ];
    for (kind, make) in make {
        let log = LogFixture::new();
        make(&log.path("0.log"));
        let opened = open_within_seconds(log.directory.path());
        assert!(opened.is_err(), "{kind}: {opened:?}");
    }
}

#[test]
fn a_log_below_a_directory_that_is_a_link_is_refused() {
    let (logs, elsewhere) = (tempdir().unwrap(), tempdir().unwrap());
    fs::create_dir(elsewhere.path().join("main")).unwrap();
    fs::write(elsewhere.path().join("main/0.log"), "2026-01-01T00:00:00Z stdout F x\n").unwrap();
    symlink(elsewhere.path(), logs.path().join("default_web_uid")).unwrap();
    let opened = open_within_seconds(&logs.path().join("default_web_uid/main"));
    assert!(opened.is_err(), "{opened:?}");
}

#[test]
fn a_log_that_is_replaced_by_a_link_while_it_is_followed_is_not_read() {
    let log = LogFixture::new();
    let secret = tempdir().unwrap();
    fs::write(secret.path().join("secret"), "secret\n").unwrap();
    log.write("0.log", "one\n");
    let mut follower = log.follower(None);
    assert_eq!(read(&mut follower), ["one"]);
    fs::remove_file(log.path("0.log")).unwrap();
    symlink(secret.path().join("secret"), log.path("0.log")).unwrap();
    let mut seen = Vec::new();
    let refused = follower.read(&mut |line| {
        seen.push(line.to_vec());
        Ok(())
    });
    assert!(refused.is_err() && seen.is_empty(), "{refused:?} {seen:?}");
}
