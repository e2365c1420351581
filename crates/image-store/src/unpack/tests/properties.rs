//! Random archives never write outside, and random trees come out as they went in.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use proptest::prelude::*;

use super::Place;
use crate::fixtures::{RawEntry, TarWriter};

/// Names that meet each other: links on the way of others, whiteouts, and ways out.
fn name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "..",
        ".",
        "",
        "outside",
        "secret",
        ".wh.a",
        ".wh.",
        ".wh..wh..opq",
        "layer",
    ]);
    let start = prop::sample::select(vec!["", "/", "./", "../", "a/", "b/c/"]);
    (start, prop::collection::vec(part, 0..4))
        .prop_map(|(start, parts)| start.to_owned() + &parts.join("/"))
}

fn raw() -> impl Strategy<Value = (u8, String, String, Vec<u8>)> {
    let kind = prop::sample::select(b"0122223456775555xLKS\0".to_vec());
    let target = prop_oneof![
        name(),
        Just("../outside".to_owned()),
        Just("../outside/secret".to_owned()),
        Just("/proc/self/root".to_owned()),
        Just("../../../../../../../tmp".to_owned()),
    ];
    (kind, name(), target, prop::collection::vec(any::<u8>(), 0..600))
}

fn archive(entries: &[(u8, String, String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = TarWriter::default();
    for (kind, name, link, data) in entries {
        let size = if matches!(kind, b'1'..=b'6') { 0 } else { data.len() as u64 };
        let data = if size == 0 { &[] } else { data.as_slice() };
        let entry = RawEntry { kind: *kind, link, size, ..RawEntry::new(*kind, name) };
        archive = archive.raw(&entry, data);
    }
    archive.end()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_archive_writes_outside(entries in prop::collection::vec(raw(), 1..25)) {
        let place = Place::new();
        // Each entry alone may be refused: those before it have been written.
        for from in 0..entries.len().min(4) {
            place.unpack(&archive(&entries[from..])).ok();
        }
        prop_assert!(place.is_untouched(), "something outside has changed");
    }

    #[test]
    fn flipped_archives_write_nothing_outside(
        entries in prop::collection::vec(raw(), 1..8),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let place = Place::new();
        let mut bytes = archive(&entries);
        for (at, to) in flips {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        place.unpack(&bytes).ok();
        prop_assert!(place.is_untouched(), "something outside has changed");
    }

    #[test]
    fn a_tree_comes_out_as_it_went_in(
        files in prop::collection::btree_map("[a-d]{1,2}(/[a-d]{1,2}){0,3}x", (0_u32..0o10000, 0_u32..70_000, prop::collection::vec(any::<u8>(), 0..2000)), 0..20),
    ) {
        let mut writer = TarWriter::default();
        for (name, (mode, owner, data)) in &files {
            let size = data.len() as u64;
            let owner = (*owner, owner / 2);
            let entry = RawEntry { mode: *mode, owner, size, ..RawEntry::new(b'0', name) };
            writer = writer.raw(&entry, data);
        }
        let place = Place::new();
        let unpacked = place.unpack(&writer.end());
        prop_assert!(unpacked.is_ok(), "{unpacked:?}");
        let found: BTreeMap<String, (u32, u32, Vec<u8>)> = super::real::walk(&place.path("layer"))
            .into_iter()
            .filter(|(path, _)| !fs::metadata(place.path("layer").join(path)).unwrap().is_dir())
            .map(|(path, seen)| (path.display().to_string(), (seen.0 & 0o7777, seen.1, seen.5)))
            .collect();
        prop_assert_eq!(found, files);
        prop_assert_eq!(fs::metadata(place.layer(".")).unwrap().uid(), 0);
    }
}
