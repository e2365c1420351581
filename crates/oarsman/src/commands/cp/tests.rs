//! Places of copies, and archives of a hostile container.

use std::fs;

use tempfile::tempdir;

use super::archive::{pack, unpack};
use super::*;

#[test]
fn a_place_in_a_pod_has_a_colon() {
    let pod = |pod: &str, path: &str| CopyPlace::Pod { pod: pod.to_owned(), path: path.to_owned() };
    let rows = [
        ("web:/etc/hosts", pod("web", "/etc/hosts")),
        ("shop/web:logs", pod("shop/web", "logs")),
        ("./a:b", CopyPlace::Here("./a:b".into())),
        ("/a:b", CopyPlace::Here("/a:b".into())),
        ("file", CopyPlace::Here("file".into())),
        ("web:", CopyPlace::Here("web:".into())),
    ];
    for (text, want) in rows {
        assert_eq!(CopyPlace::parse(text), want, "{text}");
    }
    let rows = [
        ("/etc/hosts", Some(("/etc", "hosts"))),
        ("/tmp/", Some(("/", "tmp"))),
        ("logs", Some((".", "logs"))),
        ("/", None),
        ("/a/..", None),
    ];
    for (path, want) in rows {
        let found = split_path(path).ok();
        let found = found.as_ref().map(|(directory, name)| (directory.as_str(), name.as_str()));
        assert_eq!(found, want, "{path}");
    }
}

#[test]
fn a_tree_is_packed_and_unpacked_under_another_name() {
    let directory = tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    fs::create_dir_all(from.join("deep")).unwrap();
    fs::write(from.join("deep/file"), "text").unwrap();
    let mut archive = Vec::new();
    pack(&mut archive, &from, "sent").unwrap();
    unpack(archive.as_slice(), "sent", &to).unwrap();
    assert_eq!(fs::read_to_string(to.join("deep/file")).unwrap(), "text");
}

#[test]
fn entries_stay_below_the_target_and_links_are_left_out() {
    let directory = tempdir().unwrap();
    let to = directory.path().join("to");
    let archive = |name: &str, kind: tar::EntryType| {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(1);
        // `set_path` would refuse what a container may well write.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_link_name("/etc").unwrap();
        header.set_cksum();
        builder.append(&header, b"x".as_slice()).unwrap();
        builder.into_inner().unwrap()
    };
    for name in ["sent/../../escaped", "/sent", "other", "../sent"] {
        let refused = unpack(archive(name, tar::EntryType::Regular).as_slice(), "sent", &to);
        assert!(refused.is_err(), "{name}");
    }
    let linked = unpack(archive("sent", tar::EntryType::Symlink).as_slice(), "sent", &to).unwrap();
    assert!(!to.exists() && !directory.path().join("escaped").exists());
    let nothing = linked.tell("/sent").unwrap_err().to_string();
    assert!(nothing.contains("/sent was not copied"), "{nothing}");
    let outside = unpack(archive("sent", tar::EntryType::Link).as_slice(), "sent", &to);
    assert!(outside.unwrap_err().to_string().contains("a path of another file: /etc"));
}

/// busybox is one file with hundreds of names, and GNU tar fills its last record with zeros.
#[test]
fn hard_links_become_copies_and_what_follows_the_archive_is_read() {
    let directory = tempdir().unwrap();
    let to = directory.path().join("to");
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    header.set_mode(0o644);
    builder.append_data(&mut header, "bin/busybox", b"text".as_slice()).unwrap();
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Link);
    link.set_size(0);
    builder.append_link(&mut link, "bin/sh", "bin/busybox").unwrap();
    let mut archive = builder.into_inner().unwrap();
    archive.extend([0; 9 * 1024]);
    let mut rest = archive.as_slice();
    unpack(&mut rest, "bin", &to).unwrap();
    assert_eq!(fs::read_to_string(to.join("sh")).unwrap(), "text");
    assert!(rest.is_empty(), "{} bytes are not read", rest.len());
}

#[test]
fn a_name_without_end_takes_no_memory() {
    let directory = tempdir().unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(1 << 40);
    header.set_cksum();
    let archive = std::io::Read::chain(header.as_bytes().as_slice(), std::io::repeat(b'x'));
    let refused = unpack(archive, "sent", &directory.path().join("to")).unwrap_err();
    assert!(format!("{refused:#}").contains("over 1 MiB"), "{refused:#}");
}

#[test]
fn the_cause_is_told_and_not_that_the_other_side_has_gone() {
    let broken = || anyhow::Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
    let full = || anyhow::anyhow!("disk full");
    let told = |first, second| first_cause::<()>(first, second).map_err(|error| error.to_string());
    assert_eq!(told(Err(broken()), Err(full())), Err("disk full".to_owned()));
    assert_eq!(told(Err(full()), Err(broken())), Err("disk full".to_owned()));
    assert_eq!(told(Ok(()), Err(full())), Err("disk full".to_owned()));
    assert_eq!(told(Ok(()), Ok(())), Ok(()));
}
