//! Facts about which events are told, counted, put together and left out.

use super::*;
use crate::fixture::at;

fn second(second: u64) -> Now {
    let wall = at(i64::try_from(second).unwrap());
    Now { wall, mono: Mono(Duration::from_secs(second)) }
}

fn uid() -> PodUid {
    PodUid::from("1")
}

fn says(message: &str) -> PodEvent {
    PodEvent::warning("BackOff", message)
}

/// What is told, as count and message.
fn records(correlator: &mut Correlator, message: &str, now: Now) -> Option<(i32, String)> {
    let record = correlator.correlate(("web", &uid()), &says(message), now)?;
    Some((record.count, record.message))
}

#[test]
fn the_same_again_is_counted_under_its_name() {
    let mut correlator = Correlator::default();
    let first = correlator.correlate(("web", &uid()), &says("a"), second(1)).unwrap();
    let again = correlator.correlate(("web", &uid()), &says("a"), second(5)).unwrap();
    assert_eq!((first.count, first.first, first.last), (1, at(1), at(1)));
    assert_eq!((again.count, again.first, again.last), (2, at(1), at(5)));
    assert_eq!(first.name, again.name);
}

#[test]
fn whatever_is_different_is_another_event() {
    let base = says("a");
    let others = [
        PodEvent::normal("BackOff", "a"),
        PodEvent::warning("Failed", "a"),
        says("b"),
        PodEvent { field_path: Some("spec.containers{web}".to_owned()), ..says("a") },
    ];
    let mut correlator = Correlator::default();
    let mut names =
        BTreeSet::from([correlator.correlate(("web", &uid()), &base, second(1)).unwrap().name]);
    for other in others {
        let record = correlator.correlate(("web", &uid()), &other, second(1)).unwrap();
        assert_eq!(record.count, 1, "{other:?}");
        assert!(names.insert(record.name), "{other:?}");
    }
    let namesake = correlator.correlate(("web", &PodUid::from("2")), &base, second(1)).unwrap();
    assert_eq!(namesake.count, 1);
    assert!(names.insert(namesake.name));
}

#[test]
fn many_similar_events_are_aggregated_until_a_pause() {
    let mut correlator = Correlator::default();
    for number in 1..10 {
        let message = format!("try {number}");
        let want = Some((1, message.clone()));
        assert_eq!(records(&mut correlator, &message, second(number)), want);
    }
    for (count, number) in (1..).zip(10_u64..14) {
        let want = Some((count, format!("(combined from similar events): try {number}")));
        assert_eq!(records(&mut correlator, &format!("try {number}"), second(number)), want);
    }
    let later = second(14 + 10 * 60);
    assert_eq!(records(&mut correlator, "try 14", later), Some((1, "try 14".to_owned())));
}

#[test]
fn a_pod_with_too_many_events_is_rate_limited() {
    let mut correlator = Correlator::default();
    let heard = (0..100).filter(|_| records(&mut correlator, "again", second(1)).is_some()).count();
    assert_eq!(heard, 25);
    let other = correlator.correlate(("db", &PodUid::from("2")), &says("again"), second(1));
    assert!(other.is_some(), "others are not to blame");
    assert_eq!(records(&mut correlator, "again", second(300)), None);
    let count = records(&mut correlator, "again", second(301)).unwrap().0;
    assert_eq!(count, 102, "what was not heard was counted");
    assert_eq!(records(&mut correlator, "again", second(302)), None);
}

#[test]
fn names_are_new_each_time_and_within_bounds() {
    let mut correlator = Correlator::default();
    let long = format!("{}-{}", "a".repeat(235), "b".repeat(17));
    let mut names = BTreeSet::new();
    for number in 0..20 {
        let pod = if number % 2 == 0 { "web" } else { &long };
        let uid = PodUid::from(format!("{number}"));
        // The clock stands still, and then goes back.
        let record =
            correlator.correlate((pod, &uid), &says("a"), second(20 - number / 2)).unwrap();
        assert!(record.name.len() <= 253, "{}", record.name);
        let (start, number) = record.name.rsplit_once('.').unwrap();
        assert!(pod.starts_with(start) && !start.ends_with('-'), "{start}");
        assert!(u64::from_str_radix(number, 16).is_ok(), "{number}");
        assert!(names.insert(number.to_owned()), "{number}");
    }
}

#[test]
fn the_number_of_entries_is_limited() {
    let mut correlator = Correlator::new(8);
    for number in 0..100 {
        let event = PodEvent::normal(format!("Reason{number}"), "a");
        let uid = PodUid::from(format!("{number}"));
        assert!(correlator.correlate(("web", &uid), &event, second(1)).is_some());
    }
    let remembered = (correlator.alike.len(), correlator.records.len(), correlator.buckets.len());
    assert_eq!(remembered, (8, 8, 8));
}
