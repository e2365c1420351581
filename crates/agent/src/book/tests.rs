//! What is stored is in the report, and subscribers are notified.

use std::time::Duration;

use oarsman_clock::SystemClock;
use oarsman_cri::ErrorCode;

use super::*;

/// An empty store.
pub(crate) fn empty_book() -> Arc<Book> {
    Book::new(Arc::new(SystemClock::start()), NodeReport::default())
}

fn pod(name: &str) -> Arc<Pod> {
    let name = FullName { name: name.to_owned(), namespace: "default".to_owned() };
    let mut pod = nobodys(&PodUid::from(name.name.as_str()), &name);
    let source = ("kubernetes.io/config.source".to_owned(), "file".to_owned());
    pod.metadata.annotations = Some([source].into());
    Arc::new(pod)
}

fn uid(pod: &Pod) -> PodUid {
    pod.uid()
}

#[test]
fn pods_stand_by_namespace_and_name_until_they_are_forgotten() {
    let book = empty_book();
    for name in ["b", "a"] {
        book.wanted(&pod(name), false);
    }
    book.orphan(&"c".into(), &FullName { name: "c".to_owned(), namespace: "a".to_owned() });
    let names = |book: &Book| -> Vec<(String, StageReport, bool)> {
        let pods = book.report().pods.into_iter();
        pods.map(|it| (it.pod.full_name().to_string(), it.stage, it.leaving)).collect()
    };
    let want = [
        ("c_a".to_owned(), StageReport::Terminating, true),
        ("a_default".to_owned(), StageReport::Syncing, false),
        ("b_default".to_owned(), StageReport::Syncing, false),
    ];
    assert_eq!(names(&book), want);
    book.forget(&"c".into());
    assert_eq!(names(&book), want[1..]);
}

#[test]
fn a_pod_that_waits_is_said_to_until_it_is_let_in_and_then_stands_where_its_worker_says() {
    let book = empty_book();
    let stage = |book: &Book| book.report().pods[0].stage;
    book.wanted(&pod("a"), true);
    assert_eq!(stage(&book), StageReport::Waiting);
    book.wanted(&pod("a"), false);
    assert_eq!(stage(&book), StageReport::Syncing);
    book.stage(&"a".into(), StageReport::Finished);
    book.wanted(&pod("a"), false);
    assert_eq!(stage(&book), StageReport::Finished, "an update starts no life anew");
}

#[test]
fn whoever_is_taken_away_and_wanted_again_is_not_leaving_any_more() {
    let book = empty_book();
    let pod = pod("a");
    book.wanted(&pod, false);
    book.leaving(&uid(&pod));
    book.stage(&uid(&pod), StageReport::Terminating);
    assert!(book.report().pods[0].leaving);
    book.stage(&uid(&pod), StageReport::Syncing);
    assert!(!book.report().pods[0].leaving);
}

#[test]
fn the_latest_of_what_is_being_done_is_told_until_it_is_over() {
    let book = empty_book();
    let pod = pod("a");
    book.wanted(&pod, false);
    let doing = || book.report().pods[0].doing.clone().map(|doing| (doing.what, doing.container));
    assert_eq!(doing(), None);
    let preparing = book.begin(&uid(&pod), Activity::Preparing, None);
    let pulling = book.begin(&uid(&pod), Activity::Pulling("i".to_owned()), Some("main"));
    assert_eq!(doing(), Some((Activity::Pulling("i".to_owned()), Some("main".to_owned()))));
    drop(pulling);
    assert_eq!(doing(), Some((Activity::Preparing, None)));
    drop(preparing);
    assert_eq!(doing(), None);
}

#[test]
fn the_status_is_the_latest_and_the_next_try_is_told_by_the_wall_clock() {
    let book = empty_book();
    let pod = pod("a");
    book.wanted(&pod, false);
    let phase = |phase: &str| PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() };
    book.status(&uid(&pod), &phase("Pending"));
    book.status(&uid(&pod), &phase("Running"));
    let before = book.report().now;
    book.wait(&uid(&pod), Some(book.clock.mono() + Duration::from_secs(3600)), &"it failed");
    let report = book.report();
    assert_eq!(report.pods[0].pod.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
    let wait = report.pods[0].next_try.unwrap().duration_since(before).as_secs();
    assert!((3599..=3601).contains(&wait), "{wait}");
    assert_eq!(report.pods[0].waits_for.as_deref(), Some("it failed"));
    book.wait(&uid(&pod), None, &"all is well");
    let pods = book.report().pods;
    assert_eq!((pods[0].next_try, pods[0].waits_for.as_deref()), (None, None));
}

#[test]
fn an_event_that_repeats_itself_is_counted_and_comes_last() {
    let book = empty_book();
    let (a, b) = (pod("a"), pod("b"));
    let failed = PodEvent::warning("BackOff", "Back-off restarting failed container");
    book.happened(&a, &failed);
    book.happened(&b, &failed);
    book.happened(&a, &PodEvent::normal("Pulled", "there"));
    book.happened(&a, &failed);
    let events = book.report().events;
    let said: Vec<_> =
        events.iter().map(|e| (e.pod.as_str(), e.reason.as_str(), e.count)).collect();
    assert_eq!(said, [("b", "BackOff", 1), ("a", "Pulled", 1), ("a", "BackOff", 2)]);
    assert!(events[2].first <= events[2].last);
}

#[test]
fn so_many_events_are_kept_and_no_more() {
    let book = empty_book();
    let pod = pod("a");
    for number in 0..1500 {
        let message = format!("{number} {}", "é".repeat(5000));
        book.happened(&pod, &PodEvent::normal("Reason", message));
    }
    let events = book.report().events;
    assert_eq!(events.len(), 1000);
    assert!(events[0].message.starts_with("500 é"), "the oldest are forgotten");
    assert!(events.iter().all(|event| event.message.len() <= 4096));
}

#[test]
fn trouble_with_the_runtime_lasts_from_the_first_silence_to_the_next_answer() {
    let book = empty_book();
    let trouble = || book.report().runtime.trouble;
    let silent = |call, code| Err::<(), _>(CriError::new(call, code, "no"));
    book.heard_runtime(&silent("Version", ErrorCode::Unavailable));
    let first = trouble().unwrap();
    book.heard_runtime(&silent("Status", ErrorCode::DeadlineExceeded));
    let second = trouble().unwrap();
    assert_eq!(first.since, second.since);
    assert!(second.why.starts_with("Status"), "{}", second.why);
    book.heard_runtime(&silent("Status", ErrorCode::Unknown));
    assert_eq!(trouble(), None, "a refusal is an answer");
}

#[test]
fn what_a_source_found_replaces_what_it_found_before_and_tells_where_static_pods_come_from() {
    let book = empty_book();
    let web = pod("web");
    book.wanted(&web, false);
    let broken = |place: &str| BrokenManifest {
        place: place.to_owned(),
        why: "no".to_owned(),
        goes_on: true,
    };
    let found = |broken: Vec<BrokenManifest>| Found {
        broken,
        places: vec![(web.full_name(), "/pods/web.yaml".to_owned())],
    };
    book.found("/pods", found(vec![broken("/pods/b")]));
    book.found("http://x", Found { broken: vec![broken("http://x")], places: Vec::new() });
    let report = book.report();
    let places: Vec<_> = report.broken.iter().map(|broken| broken.place.as_str()).collect();
    assert_eq!(places, ["/pods/b", "http://x"]);
    assert_eq!(report.pods[0].place.as_deref(), Some("/pods/web.yaml"));
    book.found("/pods", found(Vec::new()));
    assert_eq!(book.report().broken, [broken("http://x")]);
}

#[tokio::test]
async fn whoever_listens_hears_of_changes_and_of_nothing_else() {
    let book = empty_book();
    let mut changes = book.changes();
    book.wanted(&pod("a"), false);
    assert_eq!(changes.changed().await, Ok(1));
    book.stage(&"a".into(), StageReport::Syncing);
    book.forget(&"b".into());
    book.found("/pods", Found::default());
    book.found("/pods", Found::default());
    assert_eq!(changes.changed().await, Ok(2), "only the first look of a source was news");
}
