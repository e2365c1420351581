//! A volume's files after a kill at any of their writes: the old or the new ones, all of them, and the next write leaves nothing else.

use std::path::Path;

use oarsman_crash::kill_at_every_change;

use super::tests::{files, names_in};
use super::*;

const OLD: &[(&str, &str)] = &[("a", "old"), ("deep/b", "old"), ("gone", "old")];
const NEW: &[(&str, &str)] = &[("a", "new"), ("deep/b", "new"), ("fresh", "new")];

fn write_at(directory: &Path, second: i64, wanted: &[(&str, &str)]) {
    let now = Timestamp::from_second(second).unwrap();
    write(&AtomicWriter { directory, group: None, now }, &files(wanted)).unwrap();
}

/// The contents of the files that the link leads to; none before it is there.
fn contents(directory: &Path) -> Vec<String> {
    let data = directory.join(DATA);
    let names = ["a", "deep/b", "gone", "fresh"].map(|name| data.join(name));
    names.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

#[test]
#[ignore = "the child of the test below"]
fn child_replaces_files() {
    write_at(&oarsman_crash::directory(), 1_800_000_100, NEW);
}

#[test]
fn files_are_the_old_or_the_new_ones_wherever_their_write_was_killed() {
    let prepare = |directory: &Path| write_at(directory, 1_800_000_000, OLD);
    let child = "atomic_writer::crash_tests::child_replaces_files";
    let kills = kill_at_every_change(child, prepare, |directory, moment| {
        let found = contents(directory);
        assert!(found == ["old"; 3] || found == ["new"; 3], "{moment}: {found:?}");
        write_at(directory, 1_800_000_200, NEW);
        assert_eq!(contents(directory), ["new"; 3], "{moment}");
        let names = names_in(directory);
        assert_eq!(names.len(), 5, "{moment}: {names:?}");
        assert!(
            names[0].starts_with("..20") && names[1..] == [DATA, "a", "deep", "fresh"],
            "{names:?}"
        );
    });
    assert!(kills > 20, "killed {kills} times");
}

#[test]
fn the_first_files_of_a_volume_are_written_after_a_kill_at_any_write() {
    let child = "atomic_writer::crash_tests::child_replaces_files";
    let kills = kill_at_every_change(
        child,
        |_| {},
        |directory, moment| {
            let found = contents(directory);
            assert!(found.is_empty() || found == ["new"; 3], "{moment}: {found:?}");
            write_at(directory, 1_800_000_200, NEW);
            assert_eq!(contents(directory), ["new"; 3], "{moment}");
            assert_eq!(names_in(directory).len(), 5, "{moment}");
        },
    );
    assert!(kills > 20, "killed {kills} times");
}

#[test]
fn a_file_with_any_bit_flipped_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    write_at(directory.path(), 1_800_000_000, NEW);
    let flips = oarsman_crash::each_flip(directory.path(), 1, |directory, flip| {
        write_at(directory, 1_800_000_100, NEW);
        assert_eq!(contents(directory), ["new"; 3], "{flip}");
    });
    assert_eq!(flips, 9);
}
