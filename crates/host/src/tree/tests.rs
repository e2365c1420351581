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
struct Scene {
    directory: TempDir,
    mounts: Vec<PathBuf>,
}

impl Scene {
    fn new(files: &[&str]) -> Self {
        let scene = Self { directory: tempfile::tempdir().unwrap(), mounts: Vec::new() };
        for file in files {
            let path = scene.path(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "kept").unwrap();
        }
        scene
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

    fn refused_for(&self, point: &str) {
        let error = self.remove().unwrap_err();
        let (tree, at) = (self.path("tree"), self.path(point));
        let names_it = matches!(
            &error,
            RemoveTreeError::Mounted { point, tree: of } if *point == at && *of == tree
        );
        assert!(names_it, "{error}");
    }

    fn all_there(&self, files: &[&str]) {
        for file in files {
            assert_eq!(fs::read_to_string(self.path(file)).unwrap(), "kept", "{file}");
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for point in self.mounts.drain(..).rev() {
            let gone = detach(&point);
            assert!(gone.is_ok() || std::thread::panicking(), "{}: {gone:?}", point.display());
        }
    }
}

#[test]
fn a_tree_goes_with_all_that_is_in_it_and_nothing_beside_it() {
    let scene = Scene::new(&["tree/a/b/file", "tree/a/other", "tree/c/file", "beside"]);
    fs::create_dir_all(scene.path("tree/empty/empty")).unwrap();
    scene.remove().unwrap();
    assert!(!scene.path("tree").exists());
    scene.all_there(&["beside"]);
}

#[test]
fn what_is_not_there_is_removed_already() {
    let scene = Scene::new(&[]);
    scene.remove().unwrap();
    remove_tree(&scene.path("neither/tree")).unwrap();
}

#[test]
fn links_are_removed_and_not_followed() {
    let scene = Scene::new(&["tree/file", "outside/file"]);
    symlink(scene.path("outside"), scene.path("tree/link")).unwrap();
    symlink("../outside/file", scene.path("tree/to_file")).unwrap();
    symlink("nowhere", scene.path("tree/dangling")).unwrap();
    symlink("..", scene.path("tree/up")).unwrap();
    scene.remove().unwrap();
    assert!(!scene.path("tree").exists());
    scene.all_there(&["outside/file"]);
}

#[test]
fn a_link_in_the_tree_s_place_goes_alone() {
    let scene = Scene::new(&["outside/file"]);
    symlink("outside", scene.path("tree")).unwrap();
    scene.remove().unwrap();
    assert!(fs::symlink_metadata(scene.path("tree")).is_err());
    scene.all_there(&["outside/file"]);
}

#[test]
fn a_path_that_ends_above_is_refused() {
    let scene = Scene::new(&["tree/file"]);
    for path in [Path::new("/"), &scene.path("tree/.."), Path::new("")] {
        let error = remove_tree(path).unwrap_err();
        assert!(matches!(error, RemoveTreeError::Nameless { .. }), "{error}");
    }
    scene.all_there(&["tree/file"]);
}

#[test]
fn a_file_system_mounted_deep_below_keeps_the_whole_tree() {
    let files = ["tree/a/file", "tree/a/b/file", "tree/z/file", "tree/a/b/point/hidden"];
    let mut scene = Scene::new(&files);
    scene.tmpfs("tree/a/b/point");
    fs::write(scene.path("tree/a/b/point/volume"), "kept").unwrap();
    scene.refused_for("tree/a/b/point");
    scene.all_there(&["tree/a/file", "tree/a/b/file", "tree/z/file", "tree/a/b/point/volume"]);
}

#[test]
fn a_directory_of_the_same_file_system_bound_into_the_tree_keeps_it() {
    let mut scene = Scene::new(&["tree/a/point/hidden", "tree/file", "outside/file"]);
    scene.bind("outside", "tree/a/point");
    scene.refused_for("tree/a/point");
    scene.all_there(&["tree/file", "outside/file", "tree/a/point/file"]);
}

#[test]
fn a_file_bound_into_the_tree_keeps_it() {
    let mut scene = Scene::new(&["tree/a/point", "tree/file", "outside/file"]);
    scene.bind("outside/file", "tree/a/point");
    scene.refused_for("tree/a/point");
    scene.all_there(&["tree/file", "outside/file"]);
}

#[test]
fn a_tree_that_is_a_mount_point_itself_is_kept() {
    let mut scene = Scene::new(&["tree/hidden", "outside/file"]);
    scene.bind("outside", "tree");
    scene.refused_for("tree");
    scene.all_there(&["outside/file"]);
}

#[test]
fn once_the_mount_is_gone_the_tree_goes() {
    let mut scene = Scene::new(&["tree/point/hidden", "outside/file"]);
    scene.bind("outside", "tree/point");
    scene.refused_for("tree/point");
    detach(&scene.mounts.pop().unwrap()).unwrap();
    scene.remove().unwrap();
    assert!(!scene.path("tree").exists());
    scene.all_there(&["outside/file"]);
}

#[test]
fn a_tree_deeper_than_any_path_goes_too() {
    // In memory: on a disk, so many directories take their time.
    let mut scene = Scene::new(&["memory/hidden"]);
    scene.tmpfs("memory");
    let tree = scene.path("memory/tree");
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
