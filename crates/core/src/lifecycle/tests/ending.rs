//! A pod that is cleared away and done with.

use super::*;
use crate::pod::MIRROR_ANNOTATION;

/// A pod whose release is under way.
fn terminated(pod: Pod) -> PodUnderTest {
    let mut pod_under_test = PodUnderTest::terminating(pod);
    pod_under_test.tell(killed());
    pod_under_test
}

/// A pod that is done with, and what its last step did.
fn finished(pod: Pod) -> (PodUnderTest, Vec<String>) {
    let mut pod_under_test = terminated(pod);
    pod_under_test.tell(released());
    let mut last = pod_under_test.tell(released());
    if last.last().is_some_and(|effect| effect == "record") {
        last.extend(pod_under_test.tell(Event::RecordDone(Ok(()))));
    }
    assert_eq!(pod_under_test.state.stage(), Stage::Finished);
    (pod_under_test, last)
}

#[test]
fn a_part_that_cannot_be_released_is_tried_again_alone() {
    let failed = || Event::ReleaseDone(Err("busy".to_owned()));
    let mut pod_under_test = terminated(deleted(5));
    assert_eq!(pod_under_test.tell(failed()), ["wake at 10"]);
    assert_eq!(pod_under_test.tell(released()), ["wake at 10"], "there is no release under way");
    assert_eq!(pod_under_test.at(9).tell(Event::Wake), ["wake at 10"], "too early");
    assert_eq!(pod_under_test.at(10).tell(Event::Wake), ["release Volumes"]);
    assert_eq!(pod_under_test.tell(released()), ["release Cgroup"]);
    assert_eq!(pod_under_test.tell(failed()), ["wake at 20"]);
    let reason = pod_under_test.state.waiting().map(|waiting| waiting.reason().to_string());
    assert_eq!(reason.as_deref(), Some("the last try failed: busy"));
    assert_eq!(
        pod_under_test.at(20).tell(Event::Wake),
        ["release Cgroup"],
        "volumes stay released"
    );
}

#[test]
fn nothing_brings_a_terminated_pod_back() {
    let mut pod_under_test = terminated(deleted(5));
    pod_under_test.follows([
        ("undeleted", wanted(web()), &[]),
        ("hint", Event::Hint(Hint::Runtime), &[]),
        ("kill", evict(Some(1)), &[]),
        ("timer", Event::Wake, &[]),
        ("stray sync", synced(SyncOutcome::Ok), &[]),
        ("stray kill", killed(), &[]),
    ]);
    assert_eq!(pod_under_test.state.stage(), Stage::Terminated);
}

#[test]
fn only_a_deleted_pod_of_the_api_is_deleted_there() {
    let completed = in_phase(web(), "Succeeded");
    let mirror = annotated(deleted(5), MIRROR_ANNOTATION, "hash");
    let table: [(&str, Pod, &[&str]); 4] = [
        ("mirror", mirror, &["publish Released", "finished"]),
        ("deleted", deleted(5), &["publish Released", "allow delete", "finished"]),
        ("completed", completed, &["publish Released", "finished"]),
        ("static", from_file(deleted(5)), &["publish Released", "record", "finished"]),
    ];
    for (name, pod, want) in table {
        assert_eq!(finished(pod).1, want, "{name}");
    }
}

#[test]
fn a_completed_pod_is_kept_on_record_until_it_is_deleted() {
    let (mut pod_under_test, _) = finished(in_phase(web(), "Succeeded"));
    pod_under_test.follows([
        ("an update starts nothing", wanted(in_phase(web(), "Succeeded")), &[]),
        ("kill", evict(None), &[]),
        ("timer", Event::Wake, &[]),
        ("deletion asked for", wanted(in_phase(deleted(30), "Succeeded")), &["allow delete"]),
        ("said once", wanted(in_phase(deleted(0), "Succeeded")), &[]),
        ("gone from the API", Event::Removed, &["clean up"]),
        ("back, before it was forgotten", wanted(web()), &[]),
    ]);
}

#[test]
fn a_pod_gone_from_its_source_is_forgotten_when_all_is_over() {
    let mut pod_under_test = PodUnderTest::running(from_file(web()));
    pod_under_test.tell(Event::Removed);
    pod_under_test.tell(killed());
    pod_under_test.tell(released());
    assert_eq!(pod_under_test.tell(released()), ["publish Released", "finished", "clean up"]);
    assert_eq!(pod_under_test.tell(Event::CleanupDone(Ok(()))), ["forget"]);
}

#[test]
fn a_pod_that_comes_back_while_it_terminates_does_not_delay_its_end() {
    let mut pod_under_test = PodUnderTest::running(from_file(web()));
    pod_under_test.tell(Event::Removed);
    for event in [wanted(labelled(web(), "2")), Event::Removed, wanted(labelled(web(), "3"))] {
        assert_eq!(pod_under_test.tell(event), [""; 0]);
    }
    pod_under_test.tell(killed());
    pod_under_test.tell(released());
    assert_eq!(pod_under_test.tell(released()), ["publish Released", "finished", "clean up"]);
}

#[test]
fn the_end_of_a_static_pod_counts_only_when_it_is_on_disk() {
    let failed = || Event::RecordDone(Err("disk full".to_owned()));
    let mut pod_under_test = terminated(from_file(in_phase(web(), "Failed")));
    pod_under_test.tell(released());
    pod_under_test.follows([
        ("stray", Event::RecordDone(Ok(())), &[]),
        ("cgroup gone", released(), &["publish Released", "record"]),
        ("not written", failed(), &["wake at 10"]),
        ("hint", Event::Hint(Hint::Runtime), &["wake at 10"]),
    ]);
    let reason = pod_under_test.state.waiting().map(|waiting| waiting.reason().to_string());
    assert_eq!(reason.as_deref(), Some("the last try failed: disk full"));
    pod_under_test.at(10).follows([
        ("again", Event::Wake, &["record"]),
        ("written", Event::RecordDone(Ok(())), &["finished"]),
    ]);
}

#[test]
fn the_pod_that_leaves_is_the_one_that_was_known_and_not_the_one_that_came_back() {
    let mut pod_under_test = PodUnderTest::running(web());
    pod_under_test.tell(Event::Removed);
    pod_under_test.tell(wanted(labelled(web(), "2")));
    assert_eq!(pod_under_test.state.pod(), Some(&Arc::new(web())));
}
