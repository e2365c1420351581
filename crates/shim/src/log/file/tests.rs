//! Writing and reopening of log files.

use std::fs;

use super::*;

#[test]
fn lines_before_a_reopening_are_in_the_old_file_and_later_ones_in_the_new() {
    let directory = tempfile::tempdir().unwrap();
    let (path, rotated) = (directory.path().join("0.log"), directory.path().join("0.log.1"));
    let mut log = CriLogFile::open(&path).unwrap();
    log.add(b"one\n");
    log.flush();
    fs::rename(&path, &rotated).unwrap();
    log.add(b"two\n");
    log.reopen().unwrap();
    log.add(b"three\n");
    log.flush();
    assert_eq!(fs::read_to_string(&rotated).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
    assert_eq!(log.lost(), 0);
}

#[test]
fn a_pipe_is_no_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    // Without a reader it cannot even be opened, and that must not wait.
    CriLogFile::open(&path).unwrap_err();
    let reader = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    let error = CriLogFile::open(&path).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    drop(reader);
}

#[test]
fn a_full_disk_costs_lines_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0.log");
    let mut log = CriLogFile::open(&path).unwrap();
    log.file = File::options().write(true).open("/dev/full").unwrap();
    let line = vec![b'x'; 1023];
    let line = [line.as_slice(), b"\n"].concat();
    let fitting = MOST_WAITING / line.len();
    for _ in 0..fitting + 3 {
        log.add(&line);
        log.flush();
    }
    assert!(log.is_behind());
    assert_eq!(log.lost(), 3 * 1024);
    // Space again: whatever waited is written, whole lines of it.
    log.reopen().unwrap();
    assert!(!log.is_behind());
    assert_eq!(fs::read(&path).unwrap().len(), fitting * 1024);
}
