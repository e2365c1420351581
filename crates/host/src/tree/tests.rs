//! Real trees, links and mounts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

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
    let directory = PathBuf::from("/proc/self/fdinfo");
    let error = remove_tree(&directory).unwrap_err();
    assert!(
        matches!(&error, RemoveTreeError::Failed { path, .. } if path.starts_with(&directory)),
        "{error}"
    );
}
