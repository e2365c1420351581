//! Real trees with links, odd modes and many levels.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use tempfile::tempdir;

use super::*;

const GROUP: u32 = 4321;

fn of(path: &Path) -> (u32, u32) {
    let found = fs::symlink_metadata(path).unwrap();
    (found.gid(), found.permissions().mode() & 0o7777)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn all_of_a_tree_belongs_to_the_group_and_nothing_that_links_lead_to() {
    let directory = tempdir().unwrap();
    let (tree, outside) = (directory.path().join("tree"), directory.path().join("outside"));
    fs::create_dir_all(tree.join("a/b")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "").unwrap();
    set_mode(&outside.join("file"), 0o600);
    set_mode(&outside, 0o700);
    for (file, mode) in [("a/plain", 0o604), ("a/b/program", 0o4755), ("closed", 0o000)] {
        fs::write(tree.join(file), "").unwrap();
        set_mode(&tree.join(file), mode);
    }
    for (path, mode) in [("", 0o755), ("a", 0o700), ("a/b", 0o777)] {
        set_mode(&tree.join(path), mode);
    }
    symlink(&outside, tree.join("away")).unwrap();
    symlink(outside.join("file"), tree.join("a/link")).unwrap();
    assert!(!belongs_to(&tree, GROUP).unwrap());
    for _ in 0..2 {
        give_tree(&tree, GROUP).unwrap();
        let rows = [
            ("", 0o2775),
            ("a", 0o2770),
            ("a/b", 0o2777),
            ("a/plain", 0o664),
            ("a/b/program", 0o4775),
            ("closed", 0o660),
        ];
        for (path, mode) in rows {
            assert_eq!(of(&tree.join(path)), (GROUP, mode), "{path}");
        }
        assert_eq!(of(&tree.join("away")).0, GROUP, "the link itself");
        assert_eq!((of(&outside), of(&outside.join("file"))), ((0, 0o700), (0, 0o600)));
        assert!(belongs_to(&tree, GROUP).unwrap());
    }
}

#[test]
fn a_tree_that_is_too_deep_is_refused_and_its_top_does_not_look_done() {
    let directory = tempdir().unwrap();
    let deep: PathBuf = std::iter::repeat_n("d", MAX_DEPTH + 1).collect();
    fs::create_dir_all(directory.path().join(deep)).unwrap();
    let refused = give_tree(directory.path(), GROUP).unwrap_err().to_string();
    assert_eq!(refused, "directories are more than 256 deep");
    assert!(!belongs_to(directory.path(), GROUP).unwrap());
}
