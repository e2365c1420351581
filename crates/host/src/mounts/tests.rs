//! Recorded and hand-written mountinfo, and the lines that are hard to read.

use std::os::unix::ffi::OsStrExt;

use super::*;

/// A machine of ours: every v1 controller on a mount of its own, and a v2 tree beside them.
const HYBRID: &[u8] = include_bytes!("hybrid.mountinfo");
/// A machine with nothing but cgroup v2, as systemd lays it out, with a pod on it.
const UNIFIED: &[u8] = include_bytes!("unified.mountinfo");

#[test]
fn a_line_without_propagation_is_a_private_mount() {
    let mounts = parse(HYBRID).unwrap();
    let memory = mounts.iter().find(|mount| mount.point.ends_with("memory")).unwrap();
    assert_eq!(memory.fs_type, "cgroup");
    assert_eq!(memory.super_options, "rw,memory");
    assert_eq!(memory.propagation, Vec::<String>::new());
}

#[test]
fn every_field_of_a_shared_mount_is_read() {
    let mounts = parse(UNIFIED).unwrap();
    let expected = Mount {
        id: 61,
        parent: 28,
        device: "0:44".to_owned(),
        root: "/".into(),
        point: "/var/lib/containerd/snap shot".into(),
        options: "rw,relatime".to_owned(),
        propagation: vec!["shared:31".to_owned(), "master:2".to_owned()],
        fs_type: "overlay".to_owned(),
        source: "overlay".to_owned(),
        super_options: "rw,lowerdir=/a,upperdir=/b".to_owned(),
    };
    assert_eq!(mounts.last(), Some(&expected));
}

#[test]
fn mount_points_are_unescaped() {
    let rows: &[(&str, &[u8])] = &[
        (r"/plain", b"/plain"),
        (r"/a\040b", b"/a b"),
        (r"/tab\011newline\012hash\043", b"/tab\tnewline\nhash#"),
        (r"/back\134slash", b"/back\\slash"),
        (r"/back\134040", b"/back\\040"),
        (r"/not\04", b"/not\\04"),
        (r"/not\9xx", b"/not\\9xx"),
        (r"/not\777", b"/not\\777"),
    ];
    for (written, meant) in rows {
        let line = format!("1 0 0:1 / {written} rw - tmpfs tmpfs rw\n");
        let mounts = parse(line.as_bytes()).unwrap();
        assert_eq!(mounts[0].point.as_os_str().as_bytes(), *meant, "{written}");
    }
}

#[test]
fn a_path_that_is_not_utf8_keeps_its_bytes() {
    let mounts = parse(b"1 0 0:1 / /\xff rw - tmpfs tmpfs rw\n").unwrap();
    assert_eq!(mounts[0].point.as_os_str().as_bytes(), b"/\xff");
}

#[test]
fn an_empty_source_does_not_shift_the_fields() {
    let mounts = parse(b"1 0 0:1 / /x rw - tmpfs  rw,size=4k\n").unwrap();
    assert_eq!((mounts[0].source.as_str(), mounts[0].super_options.as_str()), ("", "rw,size=4k"));
}

#[test]
fn a_line_that_is_cut_short_is_an_error_that_quotes_it() {
    let rows = ["1 0 0:1 / /x rw - tmpfs tmpfs", "1 0 0:1 / /x rw shared:1", "x 0 0:1 / /x rw"];
    for line in rows {
        assert_eq!(parse(line.as_bytes()), Err(MountinfoError { line: line.to_owned() }));
    }
}

#[test]
fn beneath_a_directory_are_its_own_mount_and_deeper_ones_but_no_namesakes() {
    let text = b"1 0 0:1 / /a rw - x x rw\n2 1 0:2 / /a/b rw - x x rw\n3 1 0:3 / /ab rw - x x rw\n";
    let mounts = parse(text).unwrap();
    let found: Vec<u32> = beneath(&mounts, Path::new("/a")).map(|mount| mount.id).collect();
    assert_eq!(found, [1, 2]);
}

#[test]
fn this_machine_has_a_proc() {
    assert!(current().unwrap().iter().any(|mount| mount.fs_type == "proc"));
}
