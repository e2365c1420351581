//! What is removed, and what is not.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{add, of_files};
use crate::error::StoreError;
use crate::fixtures::{small_bounds, store};
use crate::roots::RootKind;
use crate::store::ImageStore;

fn layers(store: &ImageStore) -> usize {
    fs::read_dir(store.directory().join("layers")).unwrap().count()
}

#[test]
fn only_what_nothing_refers_to_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let (one, two) = (of_files(&["base", "x"]), of_files(&["base", "y", "z"]));
    add(&store, &one, &["one"]);
    add(&store, &two, &["two"]);
    assert_eq!(layers(&store), 4, "the lowest is shared");
    store.prune().unwrap();
    let root = store.prepare("c1", &two.id(), RootKind::Writable).unwrap();
    assert_eq!(root.layers.len(), 3);
    store.remove_image(&two.id()).unwrap();
    assert_eq!(store.prune().unwrap().layers, 0, "a container uses them");
    store.remove_image(&one.id()).unwrap();
    let report = store.prune().unwrap();
    assert_eq!(report.layers, 1);
    assert!(report.bytes > 0);
    store.remove_root("c1").unwrap();
    store.remove_root("c1").unwrap();
    store.prune().unwrap();
    assert_eq!(layers(&store), 0);
    let usage = store.usage().unwrap();
    assert_eq!((usage.blobs, usage.layers, usage.images.bytes), (0, 0, 0));
}

#[test]
fn the_usage_is_that_of_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    add(&store, &of_files(&["a", "b"]), &["x"]);
    store.prune().unwrap();
    let usage = store.usage().unwrap();
    // Two layers with a directory and a file each, a manifest and a configuration.
    assert_eq!((usage.blobs, usage.layers, usage.images.inodes), (2, 2, 6));
    assert!(usage.images.bytes >= 4 * 4096, "{usage:?}");
    let id = store.image("x").unwrap().id;
    store.prepare("c", &id, RootKind::Writable).unwrap();
    let before = store.root_usage("c").unwrap();
    let written = store.directory().join("roots/c/fs/new");
    fs::write(&written, vec![1; 100_000]).unwrap();
    fs::File::open(&written).unwrap().sync_all().unwrap();
    let after = store.root_usage("c").unwrap();
    assert_eq!(after.inodes, before.inodes + 1);
    assert!(after.bytes >= before.bytes + 100_000, "{before:?} {after:?}");
}

#[test]
fn keys_are_plain_names_and_belong_to_one_use() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let (one, two) = (of_files(&["a"]), of_files(&["b"]));
    add(&store, &one, &["one"]);
    add(&store, &two, &["two"]);
    for key in ["", "..", "a/b", "../../x", &"k".repeat(256)] {
        let error = store.prepare(key, &one.id(), RootKind::Writable).unwrap_err();
        assert!(matches!(error, StoreError::InvalidKey { .. }), "{error}");
    }
    let root = store.prepare("c", &one.id(), RootKind::Writable).unwrap();
    assert_eq!(store.prepare("c", &one.id(), RootKind::Writable).unwrap(), root);
    for (image, kind) in [(two.id(), RootKind::Writable), (one.id(), RootKind::ReadOnly)] {
        let error = store.prepare("c", &image, kind).unwrap_err();
        assert!(matches!(error, StoreError::KeyInUse { .. }), "{error}");
    }
    assert_eq!(store.roots().unwrap(), [root]);
    store.remove_image(&two.id()).unwrap();
    let error = store.prepare("d", &two.id(), RootKind::Writable).unwrap_err();
    assert!(matches!(error, StoreError::NoImage { .. }), "{error}");
}

/// Imports, prepares, removals and prunes at the same time: no image that was added lacks a layer, and no root file system either.
#[test]
fn prune_beside_imports_and_prepares_takes_nothing_that_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        let pruning = threads.spawn(|| {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                // A store of its own, as another process would have.
                ImageStore::open(store.directory(), small_bounds()).unwrap().prune().unwrap();
                rounds += 1;
            }
            rounds
        });
        let workers: Vec<_> = (0..3)
            .map(|worker| {
                let store = &store;
                threads.spawn(move || {
                    for round in 0..8 {
                        let own = format!("f{worker}-{round}");
                        let image = of_files(&["shared", "also-shared", &own]);
                        add(store, &image, &[&format!("img{worker}:{round}")]);
                        let key = format!("c{worker}-{round}");
                        let root = store.prepare(&key, &image.id(), RootKind::Writable).unwrap();
                        store.remove_image(&image.id()).unwrap();
                        for layer in &root.layers {
                            assert!(store.layers.files(layer).exists(), "{key} lacks {layer}");
                        }
                        if round % 2 == 0 {
                            store.remove_root(&key).unwrap();
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|it| it.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        assert!(pruning.join().unwrap() > 0);
    });
    store.prune().unwrap();
    let used: BTreeSet<_> =
        store.roots().unwrap().into_iter().flat_map(|root| root.layers).collect();
    assert_eq!(layers(&store), used.len());
    assert!(used.iter().all(|layer| store.layers.has(layer).unwrap()));
}

#[test]
fn what_a_dead_process_left_is_removed_at_the_next_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let alive = store.begin_lease().unwrap();
    let dead = store.directory().join("leases/1-0");
    fs::create_dir_all(dead.join("0/fs/deep")).unwrap();
    fs::write(dead.join("needs"), "blob x\n").unwrap();
    let again = ImageStore::open(store.directory(), small_bounds()).unwrap();
    assert!(!dead.exists());
    assert!(alive.directory().exists(), "its owner lives");
    drop((alive, again));
    assert_eq!(fs::read_dir(store.directory().join("leases")).unwrap().count(), 0);
}

#[test]
fn the_lock_keeps_other_processes_out() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let lock = crate::lease::StoreLock::shared(store.directory()).unwrap();
    let flock = |how: &str| {
        let mut command = Command::new("flock");
        command.args(["--nonblock", how]).arg(store.directory().join("lock")).arg("true");
        command.status().unwrap().success()
    };
    assert!(flock("--shared") && !flock("--exclusive"));
    drop(lock);
    assert!(flock("--exclusive"));
}

/// Records of roots are not synced: after a power failure they are empty, cut off or not there, as the file system likes.
#[test]
fn a_root_whose_record_a_power_failure_has_lost_is_removed_at_the_next_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let image = of_files(&["a"]);
    add(&store, &image, &["x"]);
    for key in ["whole", "empty", "cut", "none"] {
        store.prepare(key, &image.id(), RootKind::Writable).unwrap();
    }
    let record = |key: &str| store.root_directory(key).unwrap().join("root.json");
    let text = fs::read(record("cut")).unwrap();
    fs::write(record("cut"), &text[..text.len() / 2]).unwrap();
    fs::write(record("empty"), "").unwrap();
    fs::remove_file(record("none")).unwrap();
    let store = ImageStore::open(store.directory(), small_bounds()).unwrap();
    let left: Vec<String> = store.roots().unwrap().into_iter().map(|root| root.key).collect();
    assert_eq!(left, ["whole"]);
    assert_eq!(fs::read_dir(store.directory().join("roots")).unwrap().count(), 1);
    store.prune().unwrap();
}
