//! Files with holes, as GNU tar writes them, and as it does not.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

use super::super::{UnpackBounds, UnpackReason};
use super::Place;
use crate::fixtures::{RawEntry, TarWriter, header, small_bounds, sum};

fn holey(extents: usize) -> (tempfile::TempDir, u64) {
    let source = tempfile::tempdir().unwrap();
    let file = File::create(source.path().join("holey")).unwrap();
    for at in 0..extents as u64 {
        file.write_all_at(format!("part {at}").as_bytes(), (2 * at + 1) << 16).unwrap();
    }
    let size = (2 * extents as u64 + 5) << 16;
    file.set_len(size).unwrap();
    (source, size)
}

#[test]
fn all_formats_of_gnu_tar_for_holes_are_read() {
    for extents in [0, 1, 3, 60] {
        let (source, size) = holey(extents);
        let content = fs::read(source.path().join("holey")).unwrap();
        for format in
            ["--format=gnu", "--sparse-version=0.0", "--sparse-version=0.1", "--sparse-version=1.0"]
        {
            let mut command = Command::new("tar");
            if format.starts_with("--sparse") {
                command.arg("--format=posix");
            }
            let output = command
                .args(["--create", "--file=-", "--sparse", format, "holey"])
                .current_dir(source.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            assert!((output.stdout.len() as u64) < size.max(20_000), "no holes: {format}");
            let place = Place::new();
            place
                .unpack(&output.stdout)
                .unwrap_or_else(|error| panic!("{format} {extents}: {error}"));
            let unpacked = place.layer("holey");
            assert!(fs::read(&unpacked).unwrap() == content, "{format} {extents}");
            let found = fs::metadata(&unpacked).unwrap();
            assert!(found.blocks() * 512 < size / 2 + 4096, "{format} {extents} has no holes");
        }
    }
}

#[test]
fn a_sparse_bomb_counts_with_its_holes() {
    let archive = TarWriter::default()
        .pax(&[("GNU.sparse.map", b"0,1"), ("GNU.sparse.size", b"1099511627776")])
        .file("bomb", b"x")
        .end();
    let error = Place::new().unpack(&archive).unwrap_err();
    assert!(matches!(error.reason, UnpackReason::TooManyBytes { .. }), "{error}");
}

#[test]
fn extents_that_do_not_fit_are_refused() {
    for (case, map, size) in [
        ("overlap", "0,2,1,2", "10"),
        ("out of order", "5,2,0,2", "10"),
        ("beyond the end", "8,4", "10"),
        ("too few bytes", "0,3", "10"),
        ("odd", "0,1,2", "10"),
        ("overflow", "18446744073709551615,4", "18446744073709551615"),
        ("no numbers", "a,b", "10"),
    ] {
        let records: [(&str, &[u8]); 2] =
            [("GNU.sparse.map", map.as_bytes()), ("GNU.sparse.size", size.as_bytes())];
        let archive = TarWriter::default().pax(&records).file("bad", b"1234").end();
        let error = Place::new().unpack(&archive).expect_err(case);
        assert!(matches!(error.reason, UnpackReason::Unreadable { .. }), "{case}: {error}");
    }
}

#[test]
fn a_list_of_extents_without_end_is_refused() {
    let mut block = header(&RawEntry::new(b'S', "endless"));
    block[257..265].copy_from_slice(b"ustar  \0");
    block[482] = 1;
    sum(&mut block);
    let mut more = [0; 512];
    more[504] = 1;
    let mut archive = block.to_vec();
    (0..1000).for_each(|_| archive.extend_from_slice(&more));
    let bounds = UnpackBounds { header_bytes: 4096, ..small_bounds() };
    let error = Place::new().unpack_bounded(&archive, bounds).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    let endless = "1\n".repeat(100_000);
    let archive = TarWriter::default()
        .pax(&[
            ("GNU.sparse.major", b"1"),
            ("GNU.sparse.minor", b"0"),
            ("GNU.sparse.realsize", b"9"),
        ])
        .file("endless", format!("99999999\n{endless}").as_bytes())
        .end();
    let error = Place::new().unpack_bounded(&archive, bounds).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}
