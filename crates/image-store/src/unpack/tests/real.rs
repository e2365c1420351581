//! Archives of GNU tar, attributes, and layers over each other.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, set_xattr, unpack_at, xattr};
use crate::fixtures::{RawEntry, TarWriter, small_bounds};

/// What a walk sees of each path: kind and permissions, owner, links, time, size, content or target.
type Seen = (u32, u32, u32, u64, (i64, i64), Vec<u8>);

pub(super) fn walk(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut ahead = vec![root.to_owned()];
    while let Some(directory) = ahead.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let content = if found.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if found.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let links = if found.is_dir() { 0 } else { found.nlink() };
            let time = (found.mtime(), found.mtime_nsec());
            let one = (found.mode(), found.uid(), found.gid(), links, time, content);
            seen.insert(path.strip_prefix(root).unwrap().to_owned(), one);
            if found.is_dir() {
                ahead.push(path);
            }
        }
    }
    seen
}

fn real_tree(root: &Path) {
    let deep = root.join("a".repeat(120)).join("b".repeat(200));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("long"), "name").unwrap();
    fs::write(root.join("umlaut-\u{e4}"), vec![7; 100_000]).unwrap();
    fs::write(root.join("suid"), "program").unwrap();
    fs::set_permissions(root.join("suid"), fs::Permissions::from_mode(0o6755)).unwrap();
    fs::create_dir(root.join("sticky")).unwrap();
    fs::set_permissions(root.join("sticky"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::create_dir(root.join("locked")).unwrap();
    fs::write(root.join("locked/file"), "").unwrap();
    fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::hard_link(root.join("suid"), root.join("zlink")).unwrap();
    symlink("x".repeat(300), root.join("long-target")).unwrap();
    symlink("/nowhere", root.join("dangling")).unwrap();
    std::os::unix::fs::chown(root.join("umlaut-\u{e4}"), Some(3_000_000), Some(70_000)).unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(86_400, 123_456_789);
    for name in ["sticky", "suid"] {
        fs::File::open(root.join(name)).unwrap().set_modified(old).unwrap();
    }
}

#[test]
fn archives_of_gnu_tar_unpack_to_what_they_were_made_of() {
    let source = tempfile::tempdir().unwrap();
    real_tree(source.path());
    for format in ["gnu", "posix", "oldgnu"] {
        let output = Command::new("tar")
            .args(["--create", "--file=-", "--sort=name", &format!("--format={format}"), "."])
            .current_dir(source.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let place = Place::new();
        place.unpack(&output.stdout).unwrap();
        let (mut want, mut got) = (walk(source.path()), walk(&place.path("layer")));
        // Links are made by us now; only the formats of pax keep fractions of seconds.
        for seen in want.values_mut().chain(got.values_mut()) {
            if seen.0 & 0o170_000 == 0o120_000 || format != "posix" {
                seen.4.1 = 0;
            }
        }
        assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>(), "{format}");
        for (path, seen) in want {
            assert!(got[&path] == seen, "{format}: {}", path.display());
        }
    }
}

#[test]
fn gnu_tar_and_we_unpack_the_same() {
    let archive = TarWriter::default()
        .raw(
            &RawEntry { mode: 0o2750, owner: (11, 12), mtime: 77, ..RawEntry::new(b'5', "d/") },
            b"",
        )
        .file("d/f", b"1")
        .file("./e//g", b"2")
        .hard_link("d/h", "d/f")
        .symlink("d/s", "f")
        .pax(&[("path", "p\u{e9}/\u{fc}".as_bytes()), ("mtime", b"5.25"), ("gid", b"99")])
        .file("ignored", b"pax")
        .long(b'L', &format!("{}/x", "y".repeat(150)))
        .file("cut", b"gnu")
        .file("twice", b"first")
        .file("twice", b"again");
    let archive = archive.end();
    let place = Place::new();
    place.unpack(&archive).unwrap();
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("archive");
    fs::write(&file, &archive).unwrap();
    fs::create_dir(other.path().join("root")).unwrap();
    let status = Command::new("tar")
        .args(["--extract", "--same-owner", "--same-permissions", "--file"])
        .arg(&file)
        .current_dir(other.path().join("root"))
        .status();
    assert!(status.unwrap().success());
    let strip = |mut seen: BTreeMap<PathBuf, Seen>| {
        // GNU tar sets the time of a directory before the last entry in it is there.
        seen.values_mut().filter(|it| it.0 & 0o170_000 == 0o40000).for_each(|it| it.4 = (0, 0));
        seen
    };
    assert_eq!(fs::metadata(place.layer("d")).unwrap().mtime(), 77);
    assert_eq!(strip(walk(&place.path("layer"))), strip(walk(&other.path().join("root"))));
}

#[test]
fn attributes_of_users_and_capabilities_are_kept_and_orders_to_overlayfs_are_not() {
    let place = Place::new();
    // cap_net_bind_service=ep, version 2.
    let capability: &[u8] = &[1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let archive = TarWriter::default()
        .pax(&[
            ("SCHILY.xattr.user.note", b"a=b"),
            ("SCHILY.xattr.security.capability", capability),
            ("SCHILY.xattr.trusted.overlay.redirect", b"/etc"),
            ("SCHILY.xattr.trusted.other", b"x"),
            ("SCHILY.xattr.security.selinux", b"label"),
            ("SCHILY.xattr.user.overlay.opaque", b"y"),
        ])
        .raw(&RawEntry { mode: 0o4755, owner: (9, 9), ..RawEntry::new(b'0', "f") }, b"")
        .pax(&[("SCHILY.xattr.trusted.overlay.opaque", b"y"), ("SCHILY.xattr.user.d", b"1")])
        .directory("d");
    place.unpack(&archive.end()).unwrap();
    let (file, directory) = (place.layer("f"), place.layer("d"));
    assert_eq!(xattr(&file, "user.note").as_deref(), Some(b"a=b".as_slice()));
    assert_eq!(xattr(&file, "security.capability").as_deref(), Some(capability));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o4755);
    for name in
        ["trusted.overlay.redirect", "trusted.other", "security.selinux", "user.overlay.opaque"]
    {
        assert_eq!(xattr(&file, name), None, "{name}");
    }
    assert_eq!(xattr(&directory, "user.d").as_deref(), Some(b"1".as_slice()));
    assert_eq!(xattr(&directory, "trusted.overlay.opaque"), None);
}

#[test]
fn a_directory_that_a_layer_does_not_describe_is_as_in_the_layers_below() {
    let below = tempfile::tempdir().unwrap();
    let (top, bottom) = (below.path().join("top"), below.path().join("bottom"));
    for layer in [&top, &bottom] {
        fs::create_dir(layer).unwrap();
    }
    let directory = |name, mode, owner| RawEntry {
        mode,
        owner: (owner, owner),
        mtime: 12_345,
        ..RawEntry::new(b'5', name)
    };
    let lower = TarWriter::default()
        .raw(&directory("tmp", 0o1777, 0), b"")
        .raw(&directory("home", 0o700, 5), b"")
        .raw(&directory("home/deep", 0o750, 6), b"")
        .raw(&directory("gone", 0o700, 7), b"")
        .raw(&directory("hidden", 0o711, 3), b"")
        .raw(&directory("hidden/below", 0o700, 8), b"")
        .end();
    unpack_at(&lower[..], &bottom, &[], small_bounds()).unwrap();
    set_xattr(&bottom.join("home"), "user.x", b"y");
    let upper = TarWriter::default()
        .raw(&directory("home", 0o710, 15), b"")
        .file(".wh.gone", b"")
        .raw(&directory("hidden", 0o712, 4), b"")
        .file("hidden/.wh..wh..opq", b"")
        .end();
    let layers = [top.clone(), bottom];
    unpack_at(&upper[..], &top, &layers[1..], small_bounds()).unwrap();
    let place = Place::new();
    let archive = TarWriter::default()
        .file("tmp/f", b"")
        .file("home/deep/f", b"")
        .file("gone/f", b"")
        .file("hidden/below/f", b"")
        .file("new/f", b"");
    place.unpack_above(&archive.end(), &layers).unwrap();
    let of = |name: &str| {
        let found = fs::metadata(place.layer(name)).unwrap();
        (found.mode() & 0o7777, found.uid(), found.mtime() == 12_345)
    };
    assert_eq!(of("tmp"), (0o1777, 0, true));
    assert_eq!(of("home"), (0o710, 15, true));
    assert_eq!(of("home/deep"), (0o750, 6, true));
    assert_eq!(of("hidden"), (0o712, 4, true));
    for name in ["gone", "hidden/below", "new"] {
        assert_eq!(of(name), (0o755, 0, false), "{name}");
    }
}

#[test]
fn the_root_itself_is_not_the_layers_to_change() {
    let place = Place::new();
    fs::set_permissions(place.path("layer"), fs::Permissions::from_mode(0o755)).unwrap();
    let root = RawEntry { mode: 0o700, owner: (1, 1), ..RawEntry::new(b'5', "./") };
    place.unpack(&TarWriter::default().raw(&root, b"").file("f", b"").end()).unwrap();
    let found = fs::metadata(place.path("layer")).unwrap();
    assert_eq!((found.mode() & 0o7777, found.uid()), (0o755, 0));
}
