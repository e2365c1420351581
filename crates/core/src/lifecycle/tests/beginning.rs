//! How a worker comes to be.

use super::*;

fn rejected(quiet: bool) -> TestStart {
    let failure = PodFailure::rejected("OutOfcpu", "Node didn't have enough resource: cpu");
    TestStart { how: WorkerStart::Rejected(Arc::new(web()), failure), quiet }
}

#[test]
fn a_worker_begins_where_the_pod_stands() {
    let kill_deleted: &[&str] = &["publish Terminating", "stop liveness", "kill in 5 Deleted"];
    let kill_ended: &[&str] = &["publish Terminating", "stop liveness", "kill in 30 Terminal"];
    let release: &[&str] = &["stopped", "publish Stopped", "release Volumes"];
    let table: [(&str, TestStart, &[&str]); 12] = [
        ("a new pod", admitted(web()), &["sync First"]),
        ("a new pod of which nothing runs", quiet(web()), &["sync First"]),
        ("a deleted pod", admitted(deleted(5)), kill_deleted),
        ("a deleted pod of which nothing runs", quiet(deleted(5)), kill_deleted),
        ("a failed pod that still runs", admitted(in_phase(web(), "Failed")), kill_ended),
        (
            "a deleted and failed pod that still runs",
            admitted(in_phase(deleted(5), "Failed")),
            kill_deleted,
        ),
        ("a failed pod", quiet(in_phase(web(), "Failed")), release),
        ("a completed pod", quiet(in_phase(web(), "Succeeded")), release),
        ("a completed pod, deleted", quiet(in_phase(deleted(5), "Succeeded")), release),
        (
            "a rejected pod",
            rejected(true),
            &["stopped", "publish Stopped OutOfcpu", "release Volumes"],
        ),
        (
            "a rejected pod that runs from before",
            rejected(false),
            &["publish Terminating OutOfcpu", "stop liveness", "kill in 30 Rejected"],
        ),
        ("an orphan", orphan(), &["kill in 1 Orphan"]),
    ];
    for (name, how, want) in table {
        assert_eq!(PodUnderTest::begin(how).1, want, "{name}");
    }
}

#[test]
fn an_orphan_has_no_status_and_no_api_object() {
    let (mut pod_under_test, _) = PodUnderTest::begin(orphan());
    pod_under_test.follows([
        (
            "a failed kill is tried again",
            Event::KillDone(KillOutcome::StillRunning),
            &["wake at 10"],
        ),
        (
            "hints are answered by a kill, not by a status",
            Event::Hint(Hint::Runtime),
            &["wake at 1"],
        ),
    ]);
    pod_under_test.at(1).follows([
        ("again", Event::Wake, &["kill in 1 Orphan"]),
        ("nothing runs", killed(), &["stop probes", "stopped", "release Volumes"]),
        ("volumes gone", released(), &["release Cgroup"]),
        ("cgroup gone", released(), &["finished", "clean up"]),
        ("nothing left", Event::CleanupDone(Ok(())), &["forget"]),
    ]);
}

#[test]
fn an_orphan_that_a_source_claims_meanwhile_is_ended_first() {
    let (mut pod_under_test, _) = PodUnderTest::begin(orphan());
    pod_under_test.follows([
        ("claimed", wanted(web()), &[]),
        ("nothing runs", killed(), &["stop probes", "stopped", "release Volumes"]),
        ("volumes gone", released(), &["release Cgroup"]),
        ("cgroup gone", released(), &["finished", "clean up"]),
        ("the supervisor begins its new life", Event::CleanupDone(Ok(())), &["forget"]),
    ]);
}

#[test]
fn a_rejection_has_its_reason_in_the_message() {
    let failure = PodFailure::rejected("NodePorts", "port 80 is taken");
    assert_eq!(failure.message, "Pod was rejected: port 80 is taken");
    assert_eq!(failure.kind, PodFailureKind::Rejected);
}
