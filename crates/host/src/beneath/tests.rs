//! Everything that a container can put where a file is expected.

use std::fs;
use std::io::read_to_string;
use std::os::unix::fs::symlink;

use rustix::fs::{FileType, makedev, mknodat};
use tempfile::{TempDir, tempdir};

use super::*;

fn fixture() -> (TempDir, RootDirectory) {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("pod")).unwrap();
    fs::write(directory.path().join("pod/0.log"), "text").unwrap();
    let root = RootDirectory::open(directory.path()).unwrap();
    (directory, root)
}

#[test]
fn a_regular_file_is_read_and_removed() {
    let (directory, root) = fixture();
    let path = Path::new("pod/0.log");
    assert_eq!(read_to_string(root.open_file(path).unwrap()).unwrap(), "text");
    let pod = root.open_directory(Path::new("pod")).unwrap();
    assert_eq!(read_to_string(pod.open_file(Path::new("0.log")).unwrap()).unwrap(), "text");
    root.remove_file(path).unwrap();
    assert!(!directory.path().join(path).exists());
    let gone = [root.open_file(path).map(drop), root.remove_file(path)];
    assert!(gone.into_iter().all(|it| it.unwrap_err().kind() == io::ErrorKind::NotFound));
}

#[test]
fn links_pipes_devices_and_directories_are_no_files() {
    let (directory, root) = fixture();
    let at = |name: &str| directory.path().join(name);
    symlink("pod/0.log", at("link")).unwrap();
    symlink("/etc/hostname", at("link away")).unwrap();
    symlink("pod", at("way")).unwrap();
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    mknodat(CWD, at("device"), FileType::CharacterDevice, Mode::RWXU, makedev(1, 5)).unwrap();
    let rows = [
        ("link", "a symbolic link"),
        ("link away", "a symbolic link"),
        ("way/0.log", "a symbolic link on the way"),
        ("pipe", "it is a pipe"),
        ("device", "it is a device"),
        ("pod", "it is a directory"),
    ];
    for (name, want) in rows {
        let refused = root.open_file(Path::new(name)).unwrap_err().to_string();
        assert!(refused.contains(want), "{name}: {refused}");
    }
    for outside in ["../x", "/etc/hostname", "pod/../../x", ""] {
        assert!(root.open_file(Path::new(outside)).is_err(), "{outside}");
    }
    assert!(root.remove_file(Path::new("way/0.log")).is_err() && at("pod/0.log").exists());
    root.remove_file(Path::new("link")).unwrap();
    assert!(!at("link").is_symlink() && at("pod/0.log").exists());
}

#[test]
fn names_are_listed_until_enough_are_seen() {
    let (directory, root) = fixture();
    (0..10).for_each(|number| fs::write(directory.path().join(number.to_string()), "").unwrap());
    let (mut all, mut some) = (0, 0);
    root.each_name(&mut |_| {
        all += 1;
        true
    })
    .unwrap();
    root.each_name(&mut |_| {
        some += 1;
        some < 3
    })
    .unwrap();
    assert_eq!((all, some), (11, 3));
}
