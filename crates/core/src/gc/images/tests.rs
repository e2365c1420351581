//! Facts about unused images, and what never goes.

use proptest::prelude::*;

use super::*;

fn at(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

fn image(id: &str, bytes: u64) -> GcImage {
    GcImage { id: id.to_owned(), bytes, pinned: false }
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn ids(images: &[UnusedImage]) -> Vec<&str> {
    images.iter().map(|image| image.id.as_str()).collect()
}

/// 100 bytes, so that bytes are percents.
fn disk(available: u64) -> ImageFsStats {
    ImageFsStats { capacity: 100, available }
}

/// Five images of 4 bytes: `never` and `later` never used, `early` used at 10 s, `late` at 20 s, `now` in use.
fn memory() -> ImageRecords {
    let mut memory = ImageRecords::default();
    let first = [image("never", 4), image("late", 4), image("early", 4), image("now", 4)];
    memory.detect_images(&first, &set(&["early"]), at(10));
    let all = [&first[..], &[image("later", 4)]].concat();
    memory.detect_images(&all, &set(&["late"]), at(20));
    memory.detect_images(&all, &set(&["now"]), at(300));
    memory
}

#[test]
fn space_is_made_from_the_high_mark_down_to_the_low_one() {
    let rows: [(u64, &[&str]); 4] = [
        (16, &[]),
        (15, &["never", "later"]),
        (12, &["never", "later"]),
        (11, &["never", "later", "early"]),
    ];
    for (available, expected) in rows {
        let garbage =
            memory().garbage(&ImageGcPolicy::default(), disk(available), at(300)).unwrap();
        assert_eq!(ids(&garbage.images), expected, "{available} bytes free");
    }
}

#[test]
fn the_caller_learns_when_there_is_not_enough_to_delete() {
    let garbage = memory().garbage(&ImageGcPolicy::default(), disk(0), at(300)).unwrap();
    assert_eq!((garbage.wanted, garbage.freed), (20, 16));
    assert_eq!(ids(&garbage.images), ["never", "later", "early", "late"]);
}

#[test]
fn the_next_in_order_are_spare_for_those_that_cannot_be_deleted() {
    let garbage = memory().garbage(&ImageGcPolicy::default(), disk(12), at(300)).unwrap();
    assert_eq!(ids(&garbage.images), ["never", "later"]);
    assert_eq!(ids(&garbage.spare), ["early", "late"]);
    let garbage = memory().garbage(&ImageGcPolicy::default(), disk(50), at(300)).unwrap();
    assert_eq!((garbage.images.len(), garbage.wanted), (0, 0), "there is space");
}

#[test]
fn a_disk_of_unknown_size_is_an_error_and_not_a_reason_to_delete() {
    let unknown = ImageFsStats { capacity: 0, available: 0 };
    assert_eq!(memory().garbage(&ImageGcPolicy::default(), unknown, at(300)), Err(InvalidCapacity));
}

#[test]
fn young_pinned_and_used_images_stay() {
    let mut memory = ImageRecords::default();
    let pinned = GcImage { pinned: true, ..image("pinned", 50) };
    memory.detect_images(&[pinned.clone(), image("used", 40)], &set(&["used"]), at(0));
    memory.detect_images(&[pinned, image("used", 40), image("young", 9)], &set(&["used"]), at(200));
    let policy = ImageGcPolicy::default();
    assert!(memory.unused(&policy, at(319)).is_empty());
    assert_eq!(memory.unused(&policy, at(320)), ["young"]);
}

#[test]
fn the_old_go_even_when_there_is_space_but_only_after_the_agent_has_run_that_long() {
    let policy =
        ImageGcPolicy { max_age: Some(Duration::from_secs(290)), ..ImageGcPolicy::default() };
    let rows: [(u64, &[&str]); 4] = [
        (300, &[]),
        (305, &["never", "early"]),
        (310, &["never", "early"]),
        (311, &["never", "later", "early", "late"]),
    ];
    for (now, expected) in rows {
        let garbage = memory().garbage(&policy, disk(100), at(now)).unwrap();
        assert_eq!(ids(&garbage.images), expected, "at {now} s");
    }
}

#[test]
fn an_image_that_came_back_is_new_again() {
    let mut memory = ImageRecords::default();
    memory.detect_images(&[image("a", 1)], &set(&[]), at(0));
    memory.detect_images(&[], &set(&[]), at(200));
    memory.detect_images(&[image("a", 1)], &set(&[]), at(300));
    assert!(memory.unused(&ImageGcPolicy::default(), at(310)).is_empty());
}

proptest! {
    #[test]
    fn only_what_is_unused_goes_and_no_more_than_needed(
        sizes in proptest::collection::vec((0..50_u64, any::<bool>(), any::<bool>()), 0..12),
        available in 0..101_u64,
    ) {
        let images: Vec<_> = sizes.iter().enumerate()
            .map(|(n, (bytes, pinned, _))| GcImage { id: n.to_string(), bytes: *bytes, pinned: *pinned })
            .collect();
        let used: BTreeSet<_> =
            images.iter().zip(&sizes).filter(|(_, size)| size.2).map(|(i, _)| i.id.clone()).collect();
        let mut memory = ImageRecords::default();
        memory.detect_images(&images, &used, at(0));
        let garbage = memory.garbage(&ImageGcPolicy::default(), disk(available), at(1000)).unwrap();
        for one in garbage.images.iter().chain(&garbage.spare) {
            let image = images.iter().find(|image| image.id == one.id).unwrap();
            prop_assert!(!image.pinned && !used.contains(&one.id));
        }
        let without_last = garbage.freed - garbage.images.last().map_or(0, |image| image.bytes);
        prop_assert!(garbage.images.is_empty() || without_last < garbage.wanted);
    }
}
