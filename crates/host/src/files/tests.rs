//! Files, directories, pipes, devices and links in place of a regular file.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType as Kind, mknodat};
use rustix::io::Errno;
use tempfile::tempdir;

use super::*;

#[test]
fn regular_files_are_read_and_nothing_else_is() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("file"), "12345").unwrap();
    fs::write(at("longer"), "123456").unwrap();
    fs::write(at("empty"), "").unwrap();
    symlink("file", at("link")).unwrap();
    symlink(at("link"), at("link-to-link")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    mknodat(CWD, at("pipe"), Kind::Fifo, Mode::from(0o600), 0).unwrap();
    symlink("/dev/zero", at("device")).unwrap();
    let _listener = UnixListener::bind(at("socket")).unwrap();
    let five = || FileContents::Bytes(b"12345".to_vec());
    let rows = [
        ("file", five()),
        ("longer", FileContents::TooLong),
        ("empty", FileContents::Bytes(Vec::new())),
        ("link", five()),
        ("link-to-link", five()),
        ("directory", FileContents::Other("a directory")),
        ("pipe", FileContents::Other("a pipe")),
        ("device", FileContents::Other("a device")),
        ("socket", FileContents::Other("a socket")),
    ];
    for (name, want) in rows {
        assert_eq!(read_regular(&at(name), 5).unwrap(), want, "{name}");
    }
}

#[test]
fn a_read_error_is_that_of_the_system() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    symlink("loop", at("loop")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    let rows = [("none", Errno::NOENT), ("dangling", Errno::NOENT), ("loop", Errno::LOOP)];
    for (name, want) in rows {
        let error = read_regular(&at(name), 5).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(want.raw_os_error()), "{name}");
    }
}
