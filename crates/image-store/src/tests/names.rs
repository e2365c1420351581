//! Names of images.

use std::fs;

use super::{add, of_files};
use crate::error::StoreError;
use crate::fixtures::store;

#[test]
fn an_image_has_several_names_and_goes_with_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let image = of_files(&["a"]);
    add(&store, &image, &["busybox", "r.io/x:1", "r.io/x:2"]);
    for name in
        ["busybox", "docker.io/library/busybox:latest", "index.docker.io/busybox", "r.io/x:1"]
    {
        assert_eq!(store.image(name).unwrap().id, image.id(), "{name}");
    }
    let id = image.id();
    for wanted in [id.to_string(), id.hex(), id.hex()[..12].to_owned()] {
        assert_eq!(store.image(&wanted).unwrap().id, id, "{wanted}");
    }
    assert_eq!(store.images().unwrap()[0].digests.len(), 2);
    store.remove_name("r.io/x:1").unwrap();
    let digest = format!("r.io/x@{}", image.root().digest);
    assert_eq!(store.image(&digest).unwrap().id, id);
    store.remove_name("r.io/x:2").unwrap();
    // With the last tag of a repository its digest goes.
    assert!(matches!(store.image(&digest), Err(StoreError::NoImage { .. })));
    assert!(matches!(store.remove_name("r.io/x:2"), Err(StoreError::NoImage { .. })));
    assert_eq!(store.images().unwrap().len(), 1);
    store.remove_name("busybox").unwrap();
    assert!(store.images().unwrap().is_empty());
    add(&store, &image, &["busybox"]);
    store.tag(&id.to_string(), "other:3").unwrap();
    store.remove_image(&id).unwrap();
    store.remove_image(&id).unwrap();
    assert!(store.image("other:3").is_err() && store.image("busybox").is_err());
}

#[test]
fn a_name_moves_to_another_image() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let (old, new) = (of_files(&["a"]), of_files(&["b"]));
    add(&store, &old, &["app:1"]);
    add(&store, &new, &["app:1"]);
    assert_eq!(store.image("app:1").unwrap().id, new.id());
    // The old one can still be found by its id and its digest.
    let found = store.image(&old.id().to_string()).unwrap();
    assert_eq!((found.tags.len(), found.digests.len()), (0, 1));
    assert!(matches!(store.image("0"), Err(StoreError::NoImage { .. })));
}

#[test]
fn a_flipped_bit_in_the_list_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    add(&store, &of_files(&["a"]), &["app:1"]);
    let path = store.directory().join("images.json");
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(&path, &flipped).unwrap();
        let error = store.images().unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "byte {at}: {error}");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(store.images().unwrap().len(), 1);
}
