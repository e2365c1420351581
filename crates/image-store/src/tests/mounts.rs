//! Layers over each other, mounted for real, in mount namespaces of the tests' own.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::mount::{MountAttrFlags, MountFlags, mount};

use super::{add, in_own_mounts, of_files, own_directory};
use crate::error::StoreError;
use crate::fixtures::{TarWriter, TestImage, small_bounds, store};
use crate::overlay::{mount_at, mount_old};
use crate::roots::{ReadOnlyOptions, RootKind};
use crate::store::ImageStore;

fn names(path: &Path) -> Vec<String> {
    let list = fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        list.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What the kernel says of the mount at a directory.
fn mount_line(target: &Path) -> String {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    let path = target.display().to_string();
    table.lines().find(|line| line.contains(&path)).unwrap().to_owned()
}

#[test]
fn two_layers_are_mounted_with_whiteouts_and_opaque_directories() {
    let directory = tempfile::tempdir().unwrap();
    in_own_mounts("tests::mounts::child_two_layers", directory.path());
}

#[test]
#[ignore = "runs in a mount namespace of its own"]
fn child_two_layers() {
    let directory = own_directory();
    let store = store(&directory);
    let lower = TarWriter::default()
        .directory("d")
        .file("d/gone", b"1")
        .file("d/kept", b"2")
        .directory("o")
        .file("o/hidden", b"3")
        .directory("r")
        .file("r/old", b"4")
        .file("file", b"5");
    let upper = TarWriter::default()
        .file("d/.wh.gone", b"")
        .file("o/.wh..wh..opq", b"")
        .file("o/new", b"6")
        .file(".wh.r", b"")
        .file("r/new", b"7")
        .file(".wh.file", b"");
    let image = TestImage::plain(&[lower.end(), upper.end()]);
    add(&store, &image, &["two"]);
    store.prepare("c", &image.id(), RootKind::Writable).unwrap();
    let target = directory.join("target");
    fs::create_dir(&target).unwrap();
    store.mount("c", &target).unwrap();
    let all = |root: &Path| ["", "d", "o", "r"].map(|name| names(&root.join(name)));
    let wanted = [vec!["d", "o", "r"], vec!["kept"], vec!["new"], vec!["new"]];
    assert_eq!(all(&target), wanted);
    fs::write(target.join("written"), "x").unwrap();
    assert!(store.directory().join("roots/c/fs/written").exists());
    assert!(mount_line(&target).contains("volatile"), "nothing of it is synced");
    store.unmount(&target).unwrap();
    store.unmount(&target).unwrap();
    assert_eq!(names(&target), Vec::<String>::new());
    let error = store.mount("c", &target).unwrap_err();
    assert!(matches!(error, StoreError::Files { .. }), "what was written may be lost: {error}");
    // As kernels before 6.7 are asked.
    let root = store.prepare("old", &image.id(), RootKind::Writable).unwrap();
    mount_old(&store.overlay_layers(&root).unwrap(), &target, MountAttrFlags::empty()).unwrap();
    assert_eq!(all(&target), wanted);
    assert!(mount_line(&target).contains("volatile"));
    store.unmount(&target).unwrap();
    store.remove_root("c").unwrap();
    let error = store.mount("c", &target).unwrap_err();
    assert!(matches!(error, StoreError::NoRoot { .. }), "{error}");
}

#[test]
fn a_layer_that_hides_the_whole_root_hides_all_below() {
    let directory = tempfile::tempdir().unwrap();
    in_own_mounts("tests::mounts::child_opaque_root", directory.path());
}

#[test]
#[ignore = "runs in a mount namespace of its own"]
fn child_opaque_root() {
    let directory = own_directory();
    let store = store(&directory);
    let opaque = TarWriter::default().file(".wh..wh..opq", b"").file("new", b"");
    let layer = |name: &str| TarWriter::default().file(name, b"").end();
    let image = TestImage::plain(&[layer("lost"), opaque.end(), layer("above")]);
    add(&store, &image, &["x"]);
    store.prepare("c", &image.id(), RootKind::Writable).unwrap();
    let target = directory.join("target");
    fs::create_dir(&target).unwrap();
    store.mount("c", &target).unwrap();
    assert_eq!(names(&target), ["above", "new"]);
    store.unmount(&target).unwrap();
}

#[test]
fn more_layers_are_mounted_than_fit_a_page_of_options() {
    let directory = tempfile::tempdir().unwrap();
    in_own_mounts("tests::mounts::child_many_layers", directory.path());
}

#[test]
#[ignore = "runs in a mount namespace of its own"]
fn child_many_layers() {
    // A path beyond 255 bytes, which the kernel does not take as the value of one option.
    let directory = own_directory().join("long".repeat(60));
    fs::create_dir(&directory).unwrap();
    let store = store(&directory);
    let names: Vec<String> = (0..150).map(|at| format!("file{at}")).collect();
    let image = of_files(&names.iter().map(String::as_str).collect::<Vec<_>>());
    add(&store, &image, &["many"]);
    store.prepare("c", &image.id(), RootKind::Writable).unwrap();
    let target = own_directory().join("target");
    fs::create_dir(&target).unwrap();
    store.mount("c", &target).unwrap();
    assert_eq!(super::mounts::names(&target).len(), 150);
    store.unmount(&target).unwrap();
    let root = store.prepare("old", &image.id(), RootKind::Writable).unwrap();
    mount_old(&store.overlay_layers(&root).unwrap(), &target, MountAttrFlags::empty()).unwrap();
    assert_eq!(super::mounts::names(&target).len(), 150);
    store.unmount(&target).unwrap();
}

#[test]
fn image_volumes_are_read_only() {
    let directory = tempfile::tempdir().unwrap();
    in_own_mounts("tests::mounts::child_read_only", directory.path());
}

#[test]
#[ignore = "runs in a mount namespace of its own"]
fn child_read_only() {
    let directory = own_directory();
    let store = store(&directory);
    let target = directory.join("target");
    fs::create_dir(&target).unwrap();
    for files in [&["a", "b"][..], &["only"], &[]] {
        let image = of_files(files);
        add(&store, &image, &["volume"]);
        store.prepare("v", &image.id(), RootKind::ReadOnly).unwrap();
        store.mount_with("v", &target, ReadOnlyOptions::default()).unwrap();
        assert_eq!(names(&target), files);
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o755);
        let error = fs::write(target.join("x"), "").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem, "{files:?}");
        let line = mount_line(&target);
        for option in ["ro", "nosuid", "nodev", "noexec"] {
            assert!(line.split([' ', ',']).any(|it| it == option), "{line}");
        }
        store.unmount(&target).unwrap();
        store.remove_root("v").unwrap();
        store.prepare("w", &image.id(), RootKind::Writable).unwrap();
        store.mount("w", &target).unwrap();
        fs::write(target.join("x"), "").unwrap();
        store.unmount(&target).unwrap();
        store.remove_root("w").unwrap();
    }
}

#[test]
fn a_mount_that_the_kernel_refuses_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let layers = crate::overlay::OverlayLayers {
        lower: vec!["/nowhere".into(), "/nowhere-else".into()],
        upper: None,
    };
    let error = mount_at(&layers, directory.path(), MountAttrFlags::empty()).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn a_full_disk_leaves_what_was_there_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    in_own_mounts("tests::mounts::child_full_disk", directory.path());
}

/// Disks of all sizes, from one on which nothing fits to one on which all does.
#[test]
#[ignore = "runs in a mount namespace of its own"]
fn child_full_disk() {
    let (mut failed, mut worked) = (0, 0);
    for pages in (40..160).step_by(4) {
        let disk = own_directory().join(format!("disk{pages}"));
        fs::create_dir(&disk).unwrap();
        let options = std::ffi::CString::new(format!("size={}", pages * 4096)).unwrap();
        mount("tmpfs", &disk, "tmpfs", MountFlags::empty(), options.as_c_str()).unwrap();
        let store = ImageStore::open(&disk.join("store"), small_bounds()).unwrap();
        let first = of_files(&["first"]);
        add(&store, &first, &["first"]);
        store.prune().unwrap();
        let big = TarWriter::default().file("a", &vec![1; 100_000]).file("b", &vec![2; 200_000]);
        let image = TestImage::plain(&[big.end()]);
        let archive = own_directory().join("archive");
        fs::write(&archive, image.docker(&["big"])).unwrap();
        let file = fs::File::open(&archive).unwrap();
        let options = crate::import::ImportOptions::default();
        match store.import_archive(file, "archive", &options, &mut |_| {}) {
            Ok(_) => worked += 1,
            Err(error) => {
                assert!(error.to_string().contains("No space left"), "{error}");
                assert!(store.image("big").is_err());
                failed += 1;
            }
        }
        assert_eq!(store.image("first").unwrap().id, first.id());
        assert_eq!(fs::read_dir(store.directory().join("leases")).unwrap().count(), 0);
        store.prune().unwrap();
        store.remove_image(&image.id()).ok();
        store.prune().unwrap();
        add(&store, &first, &["again"]);
        drop(store);
        rustix::mount::unmount(&disk, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
    assert!(failed > 3 && worked > 3, "{failed} {worked}");
}
