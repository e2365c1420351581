//! Real trees of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

fn counted(path: &Path) -> DiskUsage {
    let mut count = UsageCount::of(path).unwrap();
    while !count.step(3).unwrap() {}
    assert!(count.is_complete());
    count.usage()
}

fn allocated(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).unwrap().blocks() * BLOCK
}

#[test]
fn files_directories_and_links_count_and_nothing_outside_does() {
    let place = tempfile::tempdir().unwrap();
    let (tree, outside) = (place.path().join("tree"), place.path().join("outside"));
    fs::create_dir_all(tree.join("a/b")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("large"), vec![1; 1 << 20]).unwrap();
    fs::write(tree.join("a/file"), vec![1; 100_000]).unwrap();
    symlink(&outside, tree.join("link")).unwrap();
    symlink(outside.join("large"), tree.join("a/b/link")).unwrap();
    let parts = ["", "a", "a/b", "a/file", "link", "a/b/link"];
    let bytes = parts.iter().map(|part| allocated(&tree.join(part))).sum();
    assert_eq!(counted(&tree), DiskUsage { bytes, inodes: 6 });
    let file = allocated(&tree.join("a/file"));
    assert_eq!(counted(&tree.join("a/file")), DiskUsage { bytes: file, inodes: 1 });
    assert_eq!(counted(&tree.join("none")), DiskUsage::default());
    assert_eq!(counted(&tree.join("link")).inodes, 1, "a link is not followed at the top either");
}

#[test]
fn a_file_with_two_names_counts_once_and_one_with_holes_by_what_it_holds() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("one"), vec![1; 65536]).unwrap();
    let before = counted(tree.path());
    fs::hard_link(tree.path().join("one"), tree.path().join("two")).unwrap();
    assert_eq!(counted(tree.path()), before);
    fs::File::create(tree.path().join("holes")).unwrap().set_len(1 << 40).unwrap();
    let with_holes = counted(tree.path());
    assert_eq!(with_holes.inodes, before.inodes + 1);
    assert!(with_holes.bytes < before.bytes + (1 << 20), "{with_holes:?}");
}

#[test]
fn a_tree_deeper_than_directories_are_open_is_counted_to_its_end() {
    let tree = tempfile::tempdir().unwrap();
    let deep: PathBuf = std::iter::repeat_n("d", 3 * MAX_OPEN).collect();
    fs::create_dir_all(tree.path().join(&deep)).unwrap();
    fs::write(tree.path().join(&deep).join("file"), "x").unwrap();
    assert_eq!(counted(tree.path()).inodes, 3 * MAX_OPEN as u64 + 2);
}

#[test]
fn a_step_ends_after_its_entries() {
    let tree = tempfile::tempdir().unwrap();
    for number in 0..50 {
        fs::write(tree.path().join(number.to_string()), "x").unwrap();
    }
    let mut count = UsageCount::of(tree.path()).unwrap();
    assert!(!count.step(10).unwrap());
    let part = count.usage().inodes;
    assert!(part <= 11, "{part}");
    fs::remove_dir_all(tree.path()).unwrap();
    while !count.step(10).unwrap() {}
    assert!(count.usage().inodes <= 51, "what is removed meanwhile is no error");
}

#[test]
fn a_file_system_tells_what_it_holds() {
    let usage = of_file_system(Path::new("/")).unwrap();
    assert!(usage.bytes > 0);
}
