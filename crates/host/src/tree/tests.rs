//! Real trees, links and mounts.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use oarsman_crash::HungMount;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::mount::{MountFlags, mount, mount_bind};
use tempfile::TempDir;

use super::*;
use crate::namespaces::detach;

/// A directory with `tree` in it, and mounts in that which are taken away in the end.
struct TreeFixture {
    directory: TempDir,
    mounts: Vec<PathBuf>,
}

impl TreeFixture {
    fn new(files: &[&str]) -> Self {
        let fixture = Self { directory: tempfile::tempdir().unwrap(), mounts: Vec::new() };
        for file in files {
            let path = fixture.path(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "kept").unwrap();
        }
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn bind(&mut self, from: &str, to: &str) {
        mount_bind(self.path(from), self.path(to)).unwrap();
        self.mounts.push(self.path(to));
    }

    fn tmpfs(&mut self, at: &str) {
        mount("tmpfs", self.path(at), "tmpfs", MountFlags::empty(), None).unwrap();
        self.mounts.push(self.path(at));
    }

    fn remove(&self) -> Result<(), RemoveTreeError> {
        remove_tree(&self.path("tree"))
    }

    fn assert_refused(&self, point: &str) {
        let error = self.remove().unwrap_err();
        let (tree, at) = (self.path("tree"), self.path(point));
        let names_it = matches!(
            &error,
            RemoveTreeError::Mounted { point, tree: of } if *point == at && *of == tree
        );
        assert!(names_it, "{error}");
    }

    fn assert_present(&self, files: &[&str]) {
        for file in files {
            assert_eq!(fs::read_to_string(self.path(file)).unwrap(), "kept", "{file}");
        }
    }
}

impl Drop for TreeFixture {
    fn drop(&mut self) {
        for point in self.mounts.drain(..).rev() {
            let gone = detach(&point);
            assert!(gone.is_ok() || std::thread::panicking(), "{}: {gone:?}", point.display());
        }
    }
}

#[test]
fn a_tree_is_removed_with_its_content_and_nothing_beside_it() {
    let fixture = TreeFixture::new(&["tree/a/b/file", "tree/a/other", "tree/c/file", "beside"]);
    fs::create_dir_all(fixture.path("tree/empty/empty")).unwrap();
    fixture.remove().unwrap();
    assert!(!fixture.path("tree").exists());
    fixture.assert_present(&["beside"]);
}

#[test]
fn what_is_not_there_is_removed_already() {
    let fixture = TreeFixture::new(&[]);
    fixture.remove().unwrap();
    remove_tree(&fixture.path("neither/tree")).unwrap();
}

#[test]
fn links_are_removed_and_not_followed() {
    let fixture = TreeFixture::new(&["tree/file", "outside/file"]);
    symlink(fixture.path("outside"), fixture.path("tree/link")).unwrap();
    symlink("../outside/file", fixture.path("tree/to_file")).unwrap();
    symlink("nowhere", fixture.path("tree/dangling")).unwrap();
    symlink("..", fixture.path("tree/up")).unwrap();
    fixture.remove().unwrap();
    assert!(!fixture.path("tree").exists());
    fixture.assert_present(&["outside/file"]);
}

#[test]
fn a_link_at_the_path_of_the_tree_is_removed_alone() {
    let fixture = TreeFixture::new(&["outside/file"]);
    symlink("outside", fixture.path("tree")).unwrap();
    fixture.remove().unwrap();
    assert!(fs::symlink_metadata(fixture.path("tree")).is_err());
    fixture.assert_present(&["outside/file"]);
}

#[test]
fn a_path_without_a_file_name_is_refused() {
    let fixture = TreeFixture::new(&["tree/file"]);
    for path in [Path::new("/"), &fixture.path("tree/.."), Path::new("")] {
        let error = remove_tree(path).unwrap_err();
        assert!(matches!(error, RemoveTreeError::Nameless { .. }), "{error}");
    }
    fixture.assert_present(&["tree/file"]);
}

#[test]
fn a_file_system_mounted_deep_below_keeps_the_whole_tree() {
    let files = ["tree/a/file", "tree/a/b/file", "tree/z/file", "tree/a/b/point/hidden"];
    let mut fixture = TreeFixture::new(&files);
    fixture.tmpfs("tree/a/b/point");
    fs::write(fixture.path("tree/a/b/point/volume"), "kept").unwrap();
    fixture.assert_refused("tree/a/b/point");
    fixture.assert_present(&[
        "tree/a/file",
        "tree/a/b/file",
        "tree/z/file",
        "tree/a/b/point/volume",
    ]);
}

#[test]
fn a_directory_of_the_same_file_system_bound_into_the_tree_keeps_it() {
    let mut fixture = TreeFixture::new(&["tree/a/point/hidden", "tree/file", "outside/file"]);
    fixture.bind("outside", "tree/a/point");
    fixture.assert_refused("tree/a/point");
    fixture.assert_present(&["tree/file", "outside/file", "tree/a/point/file"]);
}

#[test]
fn a_file_bound_into_the_tree_keeps_it() {
    let mut fixture = TreeFixture::new(&["tree/a/point", "tree/file", "outside/file"]);
    fixture.bind("outside/file", "tree/a/point");
    fixture.assert_refused("tree/a/point");
    fixture.assert_present(&["tree/file", "outside/file"]);
}

#[test]
fn a_tree_that_is_a_mount_point_itself_is_kept() {
    let mut fixture = TreeFixture::new(&["tree/hidden", "outside/file"]);
    fixture.bind("outside", "tree");
    fixture.assert_refused("tree");
    fixture.assert_present(&["outside/file"]);
}

#[test]
fn a_tree_is_removed_once_the_mount_is_gone() {
    let mut fixture = TreeFixture::new(&["tree/point/hidden", "outside/file"]);
    fixture.bind("outside", "tree/point");
    fixture.assert_refused("tree/point");
    detach(&fixture.mounts.pop().unwrap()).unwrap();
    fixture.remove().unwrap();
    assert!(!fixture.path("tree").exists());
    fixture.assert_present(&["outside/file"]);
}

#[test]
fn a_tree_deeper_than_any_path_is_removed() {
    // In memory: on a disk, so many directories take their time.
    let mut fixture = TreeFixture::new(&["memory/hidden"]);
    fixture.tmpfs("memory");
    let tree = fixture.path("memory/tree");
    fs::create_dir(&tree).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here = openat(CWD, &tree, flags, Mode::empty()).unwrap();
    for _ in 0..5000 {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = openat(&here, "d", flags, Mode::empty()).unwrap();
    }
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn what_cannot_be_removed_is_named() {
    let directory = PathBuf::from(format!("/proc/{}/fdinfo", std::process::id()));
    let error = remove_tree(&directory).unwrap_err();
    assert!(
        matches!(&error, RemoveTreeError::Failed { path, .. } if path.starts_with(&directory)),
        "{error}"
    );
}

/// Row H5 of docs/security.md: each file has another device than its directory.
#[test]
fn a_tree_on_an_overlay_of_two_file_systems_is_removed() {
    let mut fixture = TreeFixture::new(&["lower/tree/file", "memory/hidden", "over/hidden"]);
    fixture.tmpfs("memory");
    for directory in ["upper", "work"] {
        fs::create_dir(fixture.path("memory").join(directory)).unwrap();
    }
    let [lower, memory] = ["lower", "memory"].map(|name| fixture.path(name).display().to_string());
    let options = format!("lowerdir={lower},upperdir={memory}/upper,workdir={memory}/work");
    let options = std::ffi::CString::new(options).unwrap();
    let over = fixture.path("over");
    mount("overlay", &over, "overlay", MountFlags::empty(), options.as_c_str()).unwrap();
    fixture.mounts.push(over.clone());
    fs::write(over.join("tree/upper"), "").unwrap();
    remove_tree(&over.join("tree")).unwrap();
    assert!(!over.join("tree").exists());
    fixture.assert_present(&["lower/tree/file"]);
}

/// Row H6 of docs/security.md.
#[test]
fn a_large_tree_is_removed_in_parts() {
    let fixture = TreeFixture::new(&[]);
    for number in 0..100 {
        fs::create_dir_all(fixture.path(&format!("tree/{}", number % 10))).unwrap();
        fs::write(fixture.path(&format!("tree/{}/{number}", number % 10)), "").unwrap();
    }
    let parent = fs::File::open(fixture.directory.path()).unwrap();
    let part = || remove_at_most(parent.as_fd(), OsStr::new("tree"), 30);
    let mut parts = 1;
    while let Err(error) = part() {
        assert!(matches!(error, RemoveTreeError::Unfinished { .. }), "{error}");
        parts += 1;
    }
    assert!((4..20).contains(&parts) && !fixture.path("tree").exists(), "{parts}");
}

#[test]
fn a_tree_that_always_gets_new_files_does_not_keep_the_call_from_ending() {
    let fixture = TreeFixture::new(&["tree/file"]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let tree = fixture.path("tree");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) && number < 20_000 {
                fs::create_dir_all(tree.join(number.to_string())).unwrap();
                number += 1;
            }
        });
        let parent = fs::File::open(fixture.directory.path()).unwrap();
        for _ in 0..3 {
            // However it ends.
            remove_at_most(parent.as_fd(), OsStr::new("tree"), 500).ok();
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

/// Row H9 of docs/security.md.
#[test]
fn a_mount_whose_server_hangs_or_is_gone_is_found_without_asking_it() {
    let fixture = TreeFixture::new(&["tree/point/hidden"]);
    let point = fixture.path("tree/point");
    let Some(mut hung) = HungMount::at(&point) else { return };
    let (send, received) = std::sync::mpsc::channel();
    let tree = fixture.path("tree");
    let asked = point.clone();
    std::thread::spawn(move || {
        send.send((mounts::is_mount_point(&asked), remove_tree(&tree))).unwrap();
    });
    // Dropped when that takes too long: the thread ends with an error then.
    let (found, removed) = received.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert!(found.unwrap() && matches!(removed, Err(RemoveTreeError::Mounted { .. })));
    hung.end_server();
    assert!(fs::metadata(&point).is_err(), "its server is gone");
    assert!(mounts::is_mount_point(&point).unwrap());
    fixture.assert_refused("tree/point");
}
