//! What is stored is in the report, and subscribers are notified.

use std::time::Duration;

use oarsman_clock::SystemClock;
use oarsman_cri::ErrorCode;

use super::*;

pub(crate) fn empty_report_store() -> Arc<ReportStore> {
    ReportStore::new(Arc::new(SystemClock::start()), NodeReport::default())
}

fn pod(name: &str) -> Arc<Pod> {
    let name = FullName { name: name.to_owned(), namespace: "default".to_owned() };
    let mut pod = placeholder_pod(&PodUid::from(name.name.as_str()), &name);
    let source = ("kubernetes.io/config.source".to_owned(), "file".to_owned());
    pod.metadata.annotations = Some([source].into());
    Arc::new(pod)
}

fn uid(pod: &Pod) -> PodUid {
    pod.uid()
}

#[test]
fn pods_are_sorted_by_namespace_and_name_until_removed() {
    let report_store = empty_report_store();
    for name in ["b", "a"] {
        report_store.set_pod(&pod(name), false);
    }
    report_store
        .add_orphan(&"c".into(), &FullName { name: "c".to_owned(), namespace: "a".to_owned() });
    let names = |report_store: &ReportStore| -> Vec<(String, StageReport, bool)> {
        let pods = report_store.report().pods.into_iter();
        pods.map(|it| (it.pod.full_name().to_string(), it.stage, it.leaving)).collect()
    };
    let want = [
        ("c_a".to_owned(), StageReport::Terminating, true),
        ("a_default".to_owned(), StageReport::Syncing, false),
        ("b_default".to_owned(), StageReport::Syncing, false),
    ];
    assert_eq!(names(&report_store), want);
    report_store.remove_pod(&"c".into());
    assert_eq!(names(&report_store), want[1..]);
}

#[test]
fn a_pod_is_waiting_until_it_is_admitted_and_then_has_the_stage_of_its_worker() {
    let report_store = empty_report_store();
    let stage = |report_store: &ReportStore| report_store.report().pods[0].stage;
    report_store.set_pod(&pod("a"), true);
    assert_eq!(stage(&report_store), StageReport::Waiting);
    report_store.set_pod(&pod("a"), false);
    assert_eq!(stage(&report_store), StageReport::Syncing);
    report_store.set_stage(&"a".into(), StageReport::Finished);
    report_store.set_pod(&pod("a"), false);
    assert_eq!(stage(&report_store), StageReport::Finished, "an update starts no life anew");
}

#[test]
fn a_pod_that_is_wanted_again_is_no_longer_leaving() {
    let report_store = empty_report_store();
    let pod = pod("a");
    report_store.set_pod(&pod, false);
    report_store.set_leaving(&uid(&pod));
    report_store.set_stage(&uid(&pod), StageReport::Terminating);
    assert!(report_store.report().pods[0].leaving);
    report_store.set_stage(&uid(&pod), StageReport::Syncing);
    assert!(!report_store.report().pods[0].leaving);
}

#[test]
fn the_latest_activity_is_reported_until_it_ends() {
    let report_store = empty_report_store();
    let pod = pod("a");
    report_store.set_pod(&pod, false);
    let doing =
        || report_store.report().pods[0].doing.clone().map(|doing| (doing.what, doing.container));
    assert_eq!(doing(), None);
    let preparing = report_store.begin_activity(&uid(&pod), Activity::Preparing, None);
    let pulling =
        report_store.begin_activity(&uid(&pod), Activity::Pulling("i".to_owned()), Some("main"));
    assert_eq!(doing(), Some((Activity::Pulling("i".to_owned()), Some("main".to_owned()))));
    drop(pulling);
    assert_eq!(doing(), Some((Activity::Preparing, None)));
    drop(preparing);
    assert_eq!(doing(), None);
}

#[test]
fn the_latest_status_and_the_wall_time_of_the_next_try_are_reported() {
    let report_store = empty_report_store();
    let pod = pod("a");
    report_store.set_pod(&pod, false);
    let phase = |phase: &str| PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() };
    report_store.set_status(&uid(&pod), &phase("Pending"));
    report_store.set_status(&uid(&pod), &phase("Running"));
    let before = report_store.report().now;
    report_store.set_wait(
        &uid(&pod),
        Some(report_store.clock.mono() + Duration::from_secs(3600)),
        &WaitReason::Failed("it broke".to_owned()),
    );
    let report = report_store.report();
    assert_eq!(report.pods[0].pod.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
    let wait = report.pods[0].next_try.unwrap().duration_since(before).as_secs();
    assert!((3599..=3601).contains(&wait), "{wait}");
    assert_eq!(report.pods[0].waits_for.as_deref(), Some("the last try failed: it broke"));
    assert_eq!(report.pods[0].last_error.as_deref(), Some("it broke"));
    report_store.set_wait(&uid(&pod), None, &WaitReason::Synced);
    let pods = report_store.report().pods;
    assert_eq!((pods[0].next_try, pods[0].waits_for.as_deref()), (None, None));
}

#[test]
fn an_event_that_repeats_itself_is_counted_and_comes_last() {
    let report_store = empty_report_store();
    let (a, b) = (pod("a"), pod("b"));
    let failed = PodEvent::warning("BackOff", "Back-off restarting failed container");
    report_store.record_event(&a, &failed);
    report_store.record_event(&b, &failed);
    report_store.record_event(&a, &PodEvent::normal("Pulled", "there"));
    report_store.record_event(&a, &failed);
    let events = report_store.report().events;
    let said: Vec<_> =
        events.iter().map(|e| (e.pod.as_str(), e.reason.as_str(), e.count)).collect();
    assert_eq!(said, [("b", "BackOff", 1), ("a", "Pulled", 1), ("a", "BackOff", 2)]);
    assert!(events[2].first <= events[2].last);
}

#[test]
fn the_number_of_events_is_bounded() {
    let report_store = empty_report_store();
    let pod = pod("a");
    for number in 0..1500 {
        let message = format!("{number} {}", "é".repeat(5000));
        report_store.record_event(&pod, &PodEvent::normal("Reason", message));
    }
    let events = report_store.report().events;
    assert_eq!(events.len(), 1000);
    assert!(events[0].message.starts_with("500 é"), "the oldest are forgotten");
    assert!(events.iter().all(|event| event.message.len() <= 4096));
}

#[test]
fn the_runtime_is_unreachable_from_the_first_failure_to_the_next_answer() {
    let report_store = empty_report_store();
    let trouble = || report_store.report().runtime.trouble;
    let silent = |call, code| Err::<(), _>(CriError::new(call, code, "no"));
    report_store.record_runtime_response(&silent("Version", ErrorCode::Unavailable));
    let first = trouble().unwrap();
    report_store.record_runtime_response(&silent("Status", ErrorCode::DeadlineExceeded));
    let second = trouble().unwrap();
    assert_eq!(first.since, second.since);
    assert!(second.why.starts_with("Status"), "{}", second.why);
    report_store.record_runtime_response(&silent("Status", ErrorCode::Unknown));
    assert_eq!(trouble(), None, "a refusal is an answer");
}

#[test]
fn a_source_report_replaces_the_one_before_and_names_the_place_of_static_pods() {
    let report_store = empty_report_store();
    let web = pod("web");
    report_store.set_pod(&web, false);
    let broken = |place: &str| BrokenManifest {
        place: place.to_owned(),
        why: "no".to_owned(),
        goes_on: true,
    };
    let found = |broken: Vec<BrokenManifest>| SourceReport {
        broken,
        places: vec![(web.full_name(), "/pods/web.yaml".to_owned())],
    };
    report_store.set_source_report("/pods", found(vec![broken("/pods/b")]));
    report_store.set_source_report(
        "http://x",
        SourceReport { broken: vec![broken("http://x")], places: Vec::new() },
    );
    let report = report_store.report();
    let places: Vec<_> = report.broken.iter().map(|broken| broken.place.as_str()).collect();
    assert_eq!(places, ["/pods/b", "http://x"]);
    assert_eq!(report.pods[0].place.as_deref(), Some("/pods/web.yaml"));
    report_store.set_source_report("/pods", found(Vec::new()));
    assert_eq!(report_store.report().broken, [broken("http://x")]);
}

#[tokio::test]
async fn subscribers_are_notified_of_changes_only() {
    let report_store = empty_report_store();
    let mut changes = report_store.changes();
    report_store.set_pod(&pod("a"), false);
    assert_eq!(changes.changed().await, Ok(1));
    report_store.set_stage(&"a".into(), StageReport::Syncing);
    report_store.remove_pod(&"b".into());
    report_store.set_source_report("/pods", SourceReport::default());
    report_store.set_source_report("/pods", SourceReport::default());
    assert_eq!(changes.changed().await, Ok(2), "only the first look of a source was news");
}
