//! What an attacker would write.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::super::{UnpackBounds, UnpackReason};
use super::{Place, is_opaque, is_whiteout, unpack_at};
use crate::fixtures::{RawEntry, TarWriter, gzip, header, small_bounds, sum, zstd};

type Check = fn(&UnpackReason) -> bool;

fn tar() -> TarWriter {
    TarWriter::default()
}

/// Each is refused, with the name of the entry and this reason, and changes nothing outside.
fn refused() -> Vec<(&'static str, TarWriter, Check)> {
    let long = "x".repeat(256);
    let deep = "d/".repeat(2100);
    let owner = RawEntry { owner: (0o7777777, 0), ..RawEntry::new(b'0', "evil") };
    vec![
        ("..", tar().file("../evil", b"x"), |it| matches!(it, UnpackReason::ParentInName)),
        ("deep ..", tar().file("a/../../evil", b"x"), |it| {
            matches!(it, UnpackReason::ParentInName)
        }),
        ("harmless ..", tar().directory("a").file("a/../evil", b"x"), |it| {
            matches!(it, UnpackReason::ParentInName)
        }),
        (".. in pax", tar().pax(&[("path", b"../evil")]).file("ok", b"x"), |it| {
            matches!(it, UnpackReason::ParentInName)
        }),
        ("zero in pax", tar().pax(&[("path", b"evil\0/../x")]).file("ok", b"x"), |it| {
            matches!(it, UnpackReason::ZeroInName)
        }),
        ("hard link out", tar().hard_link("evil", "../outside/secret"), |it| {
            matches!(it, UnpackReason::ParentInName)
        }),
        ("hard link by absolute name", tar().hard_link("evil", "/etc/passwd"), |it| {
            matches!(it, UnpackReason::NoLinkTarget { .. })
        }),
        (
            "hard link through a link",
            tar().symlink("out", "../outside").hard_link("evil", "out/secret"),
            |it| matches!(it, UnpackReason::NoLinkTarget { .. }),
        ),
        ("hard link to a lower layer's file", tar().hard_link("evil", "only/below"), |it| {
            matches!(it, UnpackReason::NoLinkTarget { .. })
        }),
        ("hard link to a directory", tar().directory("d").hard_link("evil", "d"), |it| {
            matches!(it, UnpackReason::LinkToDirectory { .. })
        }),
        ("hard link to the root", tar().hard_link("evil", "/"), |it| {
            matches!(it, UnpackReason::NoLinkTarget { .. })
        }),
        ("hard link to a whiteout", tar().file(".wh.gone", b"").hard_link("evil", "gone"), |it| {
            matches!(it, UnpackReason::LinkToWhiteout { .. })
        }),
        (
            "link in a circle",
            tar().symlink("a", "b").symlink("b", "a").file("a/evil", b"x"),
            |it| matches!(it, UnpackReason::TooManyLinks),
        ),
        ("file as a directory", tar().file("f", b"x").file("f/evil", b"x"), |it| {
            matches!(it, UnpackReason::NotADirectory { .. })
        }),
        ("empty link", tar().symlink("evil", ""), |it| matches!(it, UnpackReason::EmptyLink)),
        ("whiteout device", tar().device(b'3', "evil", (0, 0)), |it| {
            matches!(it, UnpackReason::WhiteoutDevice)
        }),
        (".wh. alone", tar().file("a/.wh.", b""), |it| {
            matches!(it, UnpackReason::NamelessWhiteout)
        }),
        (".wh..", tar().file("a/.wh..", b""), |it| matches!(it, UnpackReason::NamelessWhiteout)),
        (".wh...", tar().file("a/.wh...", b""), |it| matches!(it, UnpackReason::NamelessWhiteout)),
        ("below a whiteout", tar().file(".wh.a/evil", b""), |it| {
            matches!(it, UnpackReason::WhiteoutOnTheWay)
        }),
        ("long component", tar().long(b'L', &long).file("x", b""), |it| {
            matches!(it, UnpackReason::NameTooLong)
        }),
        ("long path", tar().long(b'L', &deep).file("x", b""), |it| {
            matches!(it, UnpackReason::NameTooLong)
        }),
        ("long target", tar().long(b'K', &"t".repeat(5000)).symlink("evil", "x"), |it| {
            matches!(it, UnpackReason::NameTooLong)
        }),
        ("long name without bound", tar().long(b'L', &"n".repeat(70_000)).file("x", b""), |it| {
            matches!(it, UnpackReason::Unreadable { .. })
        }),
        ("unknown type", tar().raw(&RawEntry::new(b'V', "evil"), b""), |it| {
            matches!(it, UnpackReason::UnknownType { flag: 'V' })
        }),
        ("owner beyond Linux", tar().pax(&[("uid", b"4294967295")]).raw(&owner, b""), |it| {
            matches!(it, UnpackReason::InvalidOwner { .. })
        }),
        ("headers without entry", (0..20).fold(tar(), |it, _| it.long(b'L', "n")), |it| {
            matches!(it, UnpackReason::Unreadable { .. })
        }),
        (
            "size beyond the archive",
            tar().raw(&RawEntry { size: 1 << 20, ..RawEntry::new(b'0', "evil") }, b"x"),
            |it| matches!(it, UnpackReason::Unreadable { .. }),
        ),
        (
            "size beyond all bounds",
            tar().raw(&RawEntry { size: 1 << 32, ..RawEntry::new(b'0', "evil") }, b"x"),
            |it| matches!(it, UnpackReason::TooManyBytes { .. }),
        ),
        (
            "size of 64 bits",
            tar().pax(&[("size", b"18446744073709551615")]).file("evil", b"x"),
            |it| matches!(it, UnpackReason::TooManyBytes { .. }),
        ),
    ]
}

#[test]
fn hostile_entries_are_refused_with_a_reason() {
    for (case, archive, is_expected) in refused() {
        let place = Place::new();
        let error = place.unpack(&archive.end()).expect_err(case);
        assert!(is_expected(&error.reason), "{case}: {error}");
        assert!(error.to_string().contains("entry"), "{case}: {error}");
        assert!(place.is_untouched(), "{case}");
    }
}

#[test]
fn absolute_names_and_links_stay_below_the_root() {
    let place = Place::new();
    let outside = place.path("outside").display().to_string();
    let archive = tar()
        .file("/absolute", b"1")
        .symlink("out", "/../../../../outside")
        .file("out/secret", b"2")
        .symlink("whole", &outside)
        .file("whole/secret", b"3")
        .symlink("climb", "../../../..")
        .file("climb/etc/passwd", b"4")
        .symlink("target", "secret")
        .file("target", b"5");
    place.unpack(&archive.end()).unwrap();
    assert!(place.is_untouched());
    let read = |name: &str| fs::read(place.layer(name)).unwrap();
    assert_eq!(read("absolute"), b"1");
    assert_eq!(read("outside/secret"), b"2");
    assert_eq!(fs::read(place.path("layer").join(&outside[1..]).join("secret")).unwrap(), b"3");
    assert_eq!(read("etc/passwd"), b"4");
    // A file replaces a link, and does not go through it.
    assert_eq!(read("target"), b"5");
    assert!(!fs::symlink_metadata(place.layer("target")).unwrap().is_symlink());
}

#[test]
fn a_directory_that_becomes_a_link_later_leads_nowhere_else() {
    let place = Place::new();
    let archive = tar()
        .directory("d")
        .file("d/a", b"1")
        .symlink("d", "../outside")
        .file("d/secret", b"2")
        .directory("e")
        .file("e/a", b"3")
        .hard_link("e", "d/secret");
    place.unpack(&archive.end()).unwrap();
    assert!(place.is_untouched());
    assert_eq!(fs::read(place.layer("outside/secret")).unwrap(), b"2");
    assert_eq!(fs::read(place.layer("e")).unwrap(), b"2");
}

#[test]
fn a_path_of_two_thousand_directories_is_made_with_few_descriptors() {
    let place = Place::new();
    let deep = format!("{}file", "d/".repeat(2000));
    let link = format!("up{}", "/..".repeat(500));
    let archive = tar().symlink("up", "d/d/d").long(b'L', &deep).file("cut", b"1");
    let archive = archive.symlink("climb", &link[..99]).file("climb/there", b"2");
    place.unpack(&archive.end()).unwrap();
    assert_eq!(fs::read(place.layer("there")).unwrap(), b"2");
    let mut here = place.path("layer");
    (0..1000).for_each(|_| here.push("d"));
    assert!(here.exists());
    assert!(place.is_untouched());
}

#[test]
fn device_nodes_are_made_with_their_owner_and_mode() {
    let place = Place::new();
    let null =
        RawEntry { mode: 0o666, owner: (5, 6), device: (1, 3), ..RawEntry::new(b'3', "null") };
    let archive = tar().raw(&null, b"").device(b'4', "disk", (7, 0)).device(b'6', "pipe", (0, 0));
    place.unpack(&archive.end()).unwrap();
    let found = fs::metadata(place.layer("null")).unwrap();
    assert!(found.file_type().is_char_device());
    assert_eq!((found.mode() & 0o7777, found.uid(), found.gid()), (0o666, 5, 6));
    assert_eq!(found.rdev(), rustix::fs::makedev(1, 3));
    assert!(fs::metadata(place.layer("disk")).unwrap().file_type().is_block_device());
    assert!(fs::metadata(place.layer("pipe")).unwrap().file_type().is_fifo());
}

#[test]
fn whiteouts_hide_lower_layers_only() {
    let place = Place::new();
    let archive = tar().file(".wh..wh.plnk/x", b"");
    // Names of AUFS are ignored as entries, but refused on the way.
    let error = place.unpack(&archive.end()).unwrap_err();
    assert!(matches!(error.reason, UnpackReason::WhiteoutOnTheWay), "{error}");
    let place = Place::new();
    let archive = tar()
        .file(".wh.gone", b"")
        .file("kept", b"1")
        .file(".wh.kept", b"")
        .directory("dir")
        .file(".wh.dir", b"")
        .file(".wh.back", b"")
        .directory("back")
        .file(".wh.again", b"")
        .file("again/file", b"2")
        .file("opaque/.wh..wh..opq", b"")
        .file("opaque/new", b"3")
        .file(".wh..wh.aufs", b"")
        .symlink("link", "etc")
        .file("link/.wh.passwd", b"");
    place.unpack(&archive.end()).unwrap();
    assert!(is_whiteout(&place.layer("gone")));
    assert_eq!(fs::read(place.layer("kept")).unwrap(), b"1");
    for name in ["dir", "back", "again", "opaque"] {
        assert!(is_opaque(&place.layer(name)), "{name}");
    }
    assert_eq!(fs::read(place.layer("again/file")).unwrap(), b"2");
    assert!(!place.layer(".wh..wh.aufs").exists());
    assert!(is_whiteout(&place.layer("etc/passwd")));
    assert!(place.is_untouched());
}

#[test]
fn the_last_of_several_entries_of_one_name_counts() {
    let place = Place::new();
    let archive = tar()
        .file("a", b"first")
        .hard_link("same", "a")
        .hard_link("same", "a")
        .file("a", b"2")
        .directory("d")
        .file("d/x", b"")
        .file("d", b"file")
        .file("f", b"")
        .directory("f")
        .file("f/y", b"z");
    place.unpack(&archive.end()).unwrap();
    assert_eq!(fs::read(place.layer("a")).unwrap(), b"2");
    assert_eq!(fs::read(place.layer("same")).unwrap(), b"first");
    assert_eq!(fs::read(place.layer("d")).unwrap(), b"file");
    assert_eq!(fs::read(place.layer("f/y")).unwrap(), b"z");
}

#[test]
fn compressed_bombs_end_at_their_bounds() {
    let zeros = vec![0; 32 << 20];
    let bomb = tar().file("zeros", &zeros).end();
    let padded = [tar().file("small", b"x").end(), zeros].concat();
    for (case, archive) in
        [("gzip", gzip(&bomb)), ("zstd", zstd(&bomb)), ("zeros after the end", gzip(&padded))]
    {
        let place = Place::new();
        let error = place.unpack(&archive).expect_err(case);
        assert!(matches!(error.reason, UnpackReason::TooCompressed { .. }), "{case}: {error}");
        let bounds = UnpackBounds { ratio: 1 << 40, bytes: 8 << 20, ..small_bounds() };
        let error = Place::new().unpack_bounded(&archive, bounds).expect_err(case);
        assert!(matches!(error.reason, UnpackReason::TooManyBytes { .. }), "{case}: {error}");
        let bounds = UnpackBounds { ratio: 1 << 40, ..small_bounds() };
        Place::new().unpack_bounded(&archive, bounds).expect(case);
    }
}

#[test]
fn too_many_entries_are_refused() {
    let bounds = UnpackBounds { entries: 100, ..small_bounds() };
    let fits = (0..100).fold(tar(), |it, at| it.file(&format!("f{at}"), b""));
    Place::new().unpack_bounded(&fits.clone().end(), bounds).unwrap();
    for archive in [fits.clone().file("more", b""), fits.long(b'L', "n").file("more", b"")] {
        let error = Place::new().unpack_bounded(&archive.end(), bounds).unwrap_err();
        assert!(matches!(error.reason, UnpackReason::TooManyEntries { most: 100 }), "{error}");
    }
}

/// One block again and again, without the memory that so long an archive would take.
struct RepeatedBlock {
    block: [u8; 512],
    left: usize,
}

impl Read for RepeatedBlock {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let at = self.left % 512;
        let rest = &self.block[if at == 0 { 0 } else { 512 - at }..];
        let count = rest.len().min(into.len()).min(self.left);
        into[..count].copy_from_slice(&rest[..count]);
        self.left -= count;
        Ok(count)
    }
}

#[test]
#[ignore = "takes a minute; cargo xtask embedded runs it"]
fn a_million_entries_are_contained() {
    const MILLION: u64 = 1_000_000;
    let place = Place::new();
    let directory = RawEntry::new(b'5', "d");
    let unpack = |bounds: UnpackBounds| {
        let left = usize::try_from(MILLION).unwrap() * 512;
        let archive = RepeatedBlock { block: header(&directory), left };
        unpack_at(archive, &place.path("layer"), &[], bounds)
    };
    unpack(UnpackBounds::default()).unwrap();
    assert_eq!(fs::read_dir(place.path("layer")).unwrap().count(), 1);
    let error = unpack(UnpackBounds { entries: MILLION - 1, ..UnpackBounds::default() });
    assert!(matches!(error.unwrap_err().reason, UnpackReason::TooManyEntries { .. }));
    assert!(place.is_untouched());
}

#[test]
fn damaged_archives_are_refused() {
    let whole = tar().file("a", b"x").file("b", b"y").end();
    for (at, name) in [(0, "name"), (150, "checksum"), (1024, "second name")] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        let error = Place::new().unpack(&damaged).expect_err(name);
        assert!(error.to_string().contains("checksum"), "{name}: {error}");
    }
    for length in [1, 511, 513, 700, 1100] {
        let error = Place::new().unpack(&whole[..length]).unwrap_err();
        assert!(matches!(error.reason, UnpackReason::Unreadable { .. }), "{length}: {error}");
    }
    // The blocks of zeros at the end are often missing.
    for length in [1024, 2048, 2560] {
        Place::new().unpack(&whole[..length]).unwrap();
    }
    let mut negative = header(&RawEntry::new(b'0', "negative"));
    negative[124..136].fill(0xff);
    sum(&mut negative);
    let error = Place::new().unpack(&negative).unwrap_err();
    assert!(error.to_string().contains("negative"), "{error}");
}

#[test]
fn data_of_what_has_none_is_read_as_go_reads_it() {
    // Links and directories have no bytes, whatever their size says: the next header follows at once.
    let place = Place::new();
    let archive = tar()
        .raw(&RawEntry { size: 5, link: "x", ..RawEntry::new(b'2', "link") }, b"")
        .raw(&RawEntry { size: 512, ..RawEntry::new(b'5', "dir") }, b"")
        .file("after", b"1");
    place.unpack(&archive.end()).unwrap();
    assert_eq!(fs::read(place.layer("after")).unwrap(), b"1");
}
