//! A kill before every change of a file: what is visible is whole, and the next open removes the rest.

use std::fs;
use std::path::Path;

use oarsman_crash::{directory, kill_at_every_change};

use super::{add, of_files};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::fixtures::{TarWriter, TestImage, small_bounds, store};
use crate::roots::RootKind;
use crate::store::ImageStore;

fn before() -> TestImage {
    of_files(&["before"])
}

fn new() -> TestImage {
    let layer = TarWriter::default().directory("d").file("d/f", b"content").symlink("s", "d");
    TestImage::plain(&[layer.end()])
}

fn prepare(place: &Path) {
    add(&store(place), &before(), &["before:1"]);
}

/// Everything that the store shows is whole.
fn check(store: &ImageStore, moment: &str) {
    for entry in fs::read_dir(store.content.directory()).unwrap() {
        let path = entry.unwrap().path();
        let digest = Digest::of(&fs::read(&path).unwrap());
        assert!(path.ends_with(digest.hex()), "{moment}: {} is not whole", path.display());
    }
    for image in store.images().unwrap() {
        assert!(store.has_blob(&image.id).unwrap(), "{moment}");
        let key = format!("check-{}", image.id.hex());
        store.prepare(&key, &image.id, RootKind::Writable).expect(moment);
        store.remove_root(&key).expect(moment);
    }
    for entry in fs::read_dir(store.layers.directory()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(store.layers.usage(&name).is_ok(), "{moment}: {name} has no record");
        let files = path.join("fs");
        let is_whole = fs::read(files.join("before")).is_ok_and(|it| it == b"before")
            || (fs::read(files.join("d/f")).is_ok_and(|it| it == b"content")
                && files.join("s").is_symlink());
        assert!(is_whole, "{moment}: {name} is not whole");
    }
}

fn examine(place: &Path, moment: &str) {
    let store = ImageStore::open(&place.join("store"), small_bounds()).expect(moment);
    assert_eq!(fs::read_dir(place.join("store/leases")).unwrap().count(), 0, "{moment}");
    assert_eq!(store.image("before:1").expect(moment).id, before().id(), "{moment}");
    check(&store, moment);
    match store.image("new:1") {
        Ok(image) => assert_eq!(image.id, new().id(), "{moment}"),
        Err(StoreError::NoImage { .. }) => {}
        Err(error) => panic!("{moment}: {error}"),
    }
    // The work can be done again, and garbage goes.
    add(&store, &new(), &["new:1"]);
    store.remove_image(&new().id()).unwrap();
    store.prune().unwrap();
    check(&store, moment);
    assert_eq!(fs::read_dir(store.layers.directory()).unwrap().count(), 1, "{moment}");
}

#[test]
#[ignore = "a child of the test below"]
fn child_import() {
    let store = store(&directory());
    add(&store, &new(), &["new:1"]);
}

#[test]
fn an_import_that_is_killed_leaves_nothing_half_written() {
    let kills = kill_at_every_change("tests::crash::child_import", prepare, examine);
    assert!(kills > 20, "{kills}");
}

fn prepare_garbage(place: &Path) {
    let store = store(place);
    add(&store, &before(), &["before:1"]);
    add(&store, &new(), &["new:1"]);
    store.prepare("c", &new().id(), RootKind::Writable).unwrap();
}

#[test]
#[ignore = "a child of the test below"]
fn child_remove() {
    let store = store(&directory());
    store.prepare("d", &new().id(), RootKind::Writable).unwrap();
    store.remove_root("c").unwrap();
    store.remove_root("d").unwrap();
    store.remove_name("new:1").unwrap();
    store.prune().unwrap();
}

fn examine_removal(place: &Path, moment: &str) {
    let store = ImageStore::open(&place.join("store"), small_bounds()).expect(moment);
    check(&store, moment);
    for root in store.roots().expect(moment) {
        assert!(root.layers.iter().all(|it| store.layers.has(it).unwrap()), "{moment}");
        store.remove_root(&root.key).unwrap();
    }
    examine(place, moment);
}

#[test]
fn removals_and_prunes_that_are_killed_leave_nothing_without_its_parts() {
    let kills =
        kill_at_every_change("tests::crash::child_remove", prepare_garbage, examine_removal);
    assert!(kills > 20, "{kills}");
}
