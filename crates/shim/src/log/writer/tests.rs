//! Threads that write, that wait for a full disk, and that hang.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, pipe_with};

use super::*;

const DEADLINE: Duration = Duration::from_secs(30);

fn start(
    open: impl FnOnce() -> io::Result<CriLogFile> + Send + 'static,
) -> (LogWriter, UnixStream) {
    let (heard, notify) = UnixStream::pair().unwrap();
    heard.set_read_timeout(Some(DEADLINE)).unwrap();
    (LogWriter::start(open, notify, at(0)).unwrap(), heard)
}

fn opening(path: &Path) -> impl FnOnce() -> io::Result<CriLogFile> + Send + 'static {
    let path = path.to_owned();
    move || CriLogFile::open(&path)
}

fn at(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

/// Waits for the thread's word until that holds.
fn until(
    log: &mut LogWriter,
    mut heard: &UnixStream,
    mut holds: impl FnMut(&mut LogWriter) -> bool,
) {
    while !holds(log) {
        let count = heard.read(&mut [0; 16]).unwrap();
        assert!(count > 0);
    }
}

#[test]
fn what_was_added_is_in_the_file_when_the_log_has_settled() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0.log");
    let (mut log, heard) = start(opening(&path));
    until(&mut log, &heard, |log| log.opened().is_some());
    assert_eq!(log.opened(), Some(Ok(())));
    for number in 0..1000 {
        log.add(format!("{number}\n").as_bytes());
        log.kick();
    }
    until(&mut log, &heard, |log| log.is_settled(at(0)));
    let wanted: String = (0..1000).map(|number| format!("{number}\n")).collect();
    assert_eq!(fs::read_to_string(&path).unwrap(), wanted);
    fs::rename(&path, directory.path().join("0.log.1")).unwrap();
    log.reopen();
    let mut reopened = None;
    until(&mut log, &heard, |log| {
        reopened = log.take_reopened();
        reopened.is_some()
    });
    assert_eq!(reopened, Some(Ok(())));
    log.add(b"new\n");
    log.kick();
    until(&mut log, &heard, |log| log.is_settled(at(0)));
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), log.lost()), ("new\n", 0));
}

#[test]
fn a_file_that_cannot_be_opened_is_told() {
    let (mut log, heard) = start(opening(Path::new("/no/such/directory/0.log")));
    until(&mut log, &heard, |log| log.opened().is_some());
    assert!(log.opened().unwrap().unwrap_err().contains("No such file"));
}

#[test]
fn a_write_that_hangs_costs_lines_and_holds_nothing_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0.log");
    // A write to a full pipe comes back when it is read.
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    ioctl_fionbio(&writer, true).unwrap();
    let mut filled = 0;
    while let Ok(count) = rustix::io::write(&writer, &[0; 4096]) {
        filled += count;
    }
    ioctl_fionbio(&writer, false).unwrap();
    let (mut log, heard) =
        start(move || Ok(CriLogFile::open(&path)?.with_file(File::from(writer))));
    until(&mut log, &heard, |log| log.opened().is_some());
    assert!(log.has_room(at(0)));
    let line = [vec![b'x'; 1023], vec![b'\n']].concat();
    let add = |log: &mut LogWriter, count: u64| {
        for _ in 0..count {
            log.add(&line);
            log.kick();
        }
    };
    // More than the queue takes: nothing more is read of the container.
    add(&mut log, 1024);
    // It may be slow: so long the container waits, and its end is not told.
    assert!(!log.has_room(at(1)) && !log.is_settled(at(1)));
    assert_eq!(log.stalled_at(), Some(at(2)));
    assert!(log.has_room(at(3)) && log.is_settled(at(3)));
    assert_eq!(log.lost(), 0);
    add(&mut log, 100);
    assert_eq!(log.lost(), 100 * 1024);
    // When it comes back, whole lines are written, and all is as before.
    let reading = thread::spawn(move || {
        let mut text = Vec::new();
        File::from(reader).read_to_end(&mut text).unwrap();
        text
    });
    until(&mut log, &heard, |log| log.is_settled(at(3)) && log.has_room(at(0)));
    let lost = log.lost();
    drop(log);
    let text = reading.join().unwrap();
    let written = u64::try_from(text.len() - filled).unwrap();
    assert_eq!((written, lost), (1024 * 1024, 100 * 1024));
}
