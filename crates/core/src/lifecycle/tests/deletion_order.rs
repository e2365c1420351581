//! The deletion of a pod, in the order of the Go kubelet.

use super::*;

#[test]
fn a_pod_is_deleted_in_the_order_of_real_kubelets() {
    let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
    pod_under_test.follows([
        ("deletion is seen while a sync is under way", wanted(deleted(30)), &["cancel sync"]),
        (
            "the sync has stopped: status first, then the end begins",
            synced(SyncOutcome::Cancelled),
            &["publish Terminating", "stop liveness", "kill in 30 Deleted"],
        ),
        (
            "a container has stopped: in the API still Running, with ContainersNotReady",
            Event::Hint(Hint::Runtime),
            &["publish Terminating"],
        ),
        (
            "the sandbox is gone too, seen as one more event",
            Event::Hint(Hint::Runtime),
            &["publish Terminating"],
        ),
        (
            "nothing runs any more: the phase may become terminal",
            killed(),
            &["stop probes", "stopped", "publish Stopped", "release Volumes"],
        ),
        (
            "the API server answers with the terminal status we wrote",
            wanted(in_phase(deleted(30), "Succeeded")),
            &[],
        ),
        ("volumes are gone", released(), &["release Cgroup"]),
        (
            "the cgroup is gone: the last word, then delete with grace 0 may go out",
            released(),
            &["publish Released", "allow delete", "finished"],
        ),
        (
            "the runtime tells late of a container: whatever runs is a leftover",
            Event::Hint(Hint::Runtime),
            &["leftovers"],
        ),
        ("nothing runs", killed(), &[]),
        ("the object is gone from the API", Event::Removed, &["clean up"]),
        ("a late kill of what is gone does no harm", evict(Some(1)), &[]),
        ("nothing is left", Event::CleanupDone(Ok(())), &["forget"]),
    ]);
}

#[test]
fn a_forced_deletion_is_a_removal_and_still_gets_its_grace() {
    let mut pod_under_test = PodUnderTest::running(web());
    pod_under_test.follows([
        (
            "the object vanished",
            Event::Removed,
            &["publish Terminating", "stop liveness", "kill in 30 Removed"],
        ),
        (
            "nothing runs",
            killed(),
            &["stop probes", "stopped", "publish Stopped", "release Volumes"],
        ),
        ("volumes gone", released(), &["release Cgroup"]),
        ("no API object to delete", released(), &["publish Released", "finished", "clean up"]),
    ]);
}

#[test]
fn a_pod_that_completes_by_itself_is_cleared_away_and_stays_on_record() {
    let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
    pod_under_test.follows([
        (
            "nothing more to run",
            synced(SyncOutcome::Terminal),
            &["publish Terminating", "stop liveness", "kill in 30 Terminal"],
        ),
        (
            "nothing runs",
            killed(),
            &["stop probes", "stopped", "publish Stopped", "release Volumes"],
        ),
        ("volumes gone", released(), &["release Cgroup"]),
        ("done, and kept", released(), &["publish Released", "finished"]),
    ]);
}

#[test]
fn a_pod_that_died_while_the_agent_was_away_is_taken_through_the_rest() {
    let pod = in_phase(deleted(30), "Failed");
    let (mut pod_under_test, first) = PodUnderTest::begin(quiet(pod));
    assert_eq!(first, ["stopped", "publish Stopped", "release Volumes"]);
    pod_under_test.follows([
        ("volumes gone", released(), &["release Cgroup"]),
        ("done", released(), &["publish Released", "allow delete", "finished"]),
    ]);
}
