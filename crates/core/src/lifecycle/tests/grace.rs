//! The arithmetic of grace.

use super::*;

#[test]
fn the_first_grace_is_the_shorter_of_what_was_set_or_else_the_spec() {
    let table = [
        ("spec alone", web(), None, 30),
        ("deletion", deleted(12), None, 12),
        ("deletion longer than the spec", deleted(90), None, 90),
        ("asked", web(), Some(8), 8),
        ("asked for longer than the spec", web(), Some(45), 45),
        ("asked for less than deletion", deleted(12), Some(8), 8),
        ("asked for more than deletion", deleted(12), Some(20), 12),
        ("deletion at once", deleted(0), None, 1),
        ("asked at once", web(), Some(0), 1),
        ("nothing said anywhere", Pod::default(), None, 1),
    ];
    for (name, pod, asked, want) in table {
        assert_eq!(Grace::initial(Some(&pod), asked).seconds(), want, "{name}");
    }
}

#[test]
fn an_orphan_gets_one_second() {
    assert_eq!(Grace::initial(None, Some(30)), Grace::SHORTEST);
    assert_eq!(Grace::SHORTEST.as_duration(), Duration::from_secs(1));
}

#[test]
fn a_kill_is_overdue_after_one_and_a_half_grace_periods_and_at_least_ten_seconds() {
    for (grace, overdue_after) in [(1, 10), (6, 10), (8, 12), (30, 45)] {
        let want = Duration::from_secs(overdue_after);
        assert_eq!(Grace::from_seconds(grace).overdue_after(), want, "{grace} s");
    }
}
