//! The end of a pod, its rejection, and what stays true of it throughout: times and addresses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::status::merge::merge;

#[test]
fn the_last_status_waits_for_nothing() {
    let unknown = "ended 137 ContainerStatusUnknown".to_owned();
    let pod = pod().regular("a").regular("b").build();
    let status = status_fixture(pod, |view| view.sandbox().exited("a", 0))
        .termination(TerminationStage::Released)
        .status();
    assert_eq!(container_state(&status, "a").0, "ended 0 Completed");
    assert_eq!(container_state(&status, "b").0, unknown);
    let message = "The container could not be located when the pod was terminated";
    assert_eq!(container(&status, "b").ended().unwrap().message.as_deref(), Some(message));
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(describe_condition(&status, "Ready"), "False PodFailed");
}

#[test]
fn containers_that_were_never_tried_get_no_end() {
    let pod = pod().init("i").init("j").regular("app").build();
    let unknown = "ended 137 ContainerStatusUnknown";
    let waiting = "waiting PodInitializing";
    let rows = [
        ("nothing tried", view(&pod), [unknown, waiting, waiting]),
        ("first tried", view(&pod).sandbox().exited("i", 1), ["ended 1 Error", waiting, waiting]),
        (
            "first done",
            view(&pod).sandbox().exited("i", 0),
            ["ended 0 Completed", waiting, waiting],
        ),
        (
            "second lost",
            view(&pod).sandbox().exited("i", 0).running("j"),
            ["ended 0 Completed", unknown, waiting],
        ),
        (
            "second failed",
            view(&pod).sandbox().exited("i", 0).exited("j", 1),
            ["ended 0 Completed", "ended 1 Error", waiting],
        ),
        (
            "all done",
            view(&pod).sandbox().exited("i", 0).exited("j", 0),
            ["ended 0 Completed", "ended 0 Completed", unknown],
        ),
    ];
    for (case, held, expected) in rows {
        let status =
            status_fixture(pod.clone(), |_| held).termination(TerminationStage::Released).status();
        assert_eq!(
            ["i", "j", "app"].map(|name| container_state(&status, name).0),
            expected,
            "{case}"
        );
    }
}

#[test]
fn a_deleted_pod_ends_in_the_order_others_rely_on() {
    let pod = pod().regular("app").deleting(30).build();
    let ready = status_fixture(pod, |view| view.sandbox().running("app"));
    let stopping =
        ready.then(|view| view.sandbox().running("app")).termination(TerminationStage::Terminating);
    let down = stopping.then(|view| view.dead_sandbox().exited("app", 143));
    let stopped = down
        .then(|view| view.dead_sandbox().exited("app", 143))
        .termination(TerminationStage::Stopped);
    let released = stopped
        .then(|view| view.dead_sandbox().exited("app", 143))
        .termination(TerminationStage::Released);
    let unready = "False ContainersNotReady containers with unready status: [app]";
    let rows = [
        ("still up", stopping, "Running", "True"),
        ("containers and sandbox down", down, "Running", unready),
        ("nothing runs, but not all is given back", stopped, "Running", "False PodFailed"),
        ("all given back", released, "Failed", "False PodFailed"),
    ];
    let mut seen = ready.status();
    for (case, status_fixture, phase, readiness) in rows {
        seen = merge(
            &seen,
            &status_fixture.status(),
            status_fixture.termination == Some(TerminationStage::Released),
            at(90),
        );
        assert_eq!(seen.phase.as_deref(), Some(phase), "{case}");
        assert_eq!(describe_condition(&seen, "Ready"), readiness, "{case}");
    }
}

#[test]
fn a_rejected_pod_has_a_reason_and_no_containers() {
    let mut rejected = status_fixture(one("Always"), |view| view.sandbox().running("app"));
    rejected.failure =
        Some(PodFailure::rejected("OutOfcpu", "Node didn't have enough resource: cpu"));
    let status = rejected.status();
    let expected = PodStatus {
        phase: Some("Failed".to_owned()),
        reason: Some("OutOfcpu".to_owned()),
        message: Some("Pod was rejected: Node didn't have enough resource: cpu".to_owned()),
        qos_class: Some("BestEffort".to_owned()),
        start_time: Some(Time(at(50))),
        ..PodStatus::default()
    };
    assert_eq!(status, expected);
    let later = StatusFixture { second: 90, ..rejected.after(status.clone()) };
    assert_eq!(later.status(), status, "and keeps its start time");
}

#[test]
fn a_pod_that_had_ended_is_not_rejected_any_more() {
    let succeeded = status_fixture(one("Never"), |view| view.sandbox().exited("app", 0));
    let mut late = succeeded.then(|view| view.sandbox().exited("app", 0));
    late.failure = Some(PodFailure::rejected("OutOfcpu", "too late"));
    assert_eq!(late.status(), succeeded.status());
}

#[test]
fn the_start_time_is_set_once_and_times_are_whole_seconds() {
    let first = status_fixture(one("Always"), |view| view.sandbox());
    assert_eq!(first.status().start_time, Some(Time(at(50))));
    assert_eq!(first.then(|view| view.sandbox()).status().start_time, Some(Time(at(50))));
    let mut finer = first;
    finer.previous = Some(PodStatus {
        start_time: Some(Time(at(3) + jiff::SignedDuration::from_millis(250))),
        ..PodStatus::default()
    });
    assert_eq!(finer.status().start_time, Some(Time(at(3))));
}

#[test]
fn the_qos_class_is_always_set() {
    let pod = one("Always");
    let rows = [
        ("nothing made", status_fixture(pod.clone(), |view| view)),
        ("runs", status_fixture(pod.clone(), |view| view.sandbox().running("app"))),
        ("over", status_fixture(pod, |view| view).termination(TerminationStage::Released)),
    ];
    for (case, status_fixture) in rows {
        assert_eq!(status_fixture.status().qos_class.as_deref(), Some("BestEffort"), "{case}");
    }
}

#[test]
fn addresses_are_those_of_the_newest_sandbox_one_of_each_family_the_nodes_first() {
    let ips = |ips: &[&str]| ips.iter().map(|ip| (*ip).to_owned()).collect::<Vec<_>>();
    let rows: [(&[&str], &[&str], &[&str]); 4] = [
        (&["192.168.0.1"], &["10.0.0.1"], &["10.0.0.1"]),
        (&["192.168.0.1"], &["fd00::1", "10.0.0.1", "10.0.0.2"], &["10.0.0.1", "fd00::1"]),
        (&["fd00::9"], &["10.0.0.1", "fd00:0::1"], &["fd00::1", "10.0.0.1"]),
        (&[], &["nonsense", "10.0.0.1"], &["10.0.0.1"]),
    ];
    for (host, sandbox, expected) in rows {
        let mut addressed = status_fixture(one("Always"), |view| {
            view.sandbox().edit_sandbox(|s| s.ips = ips(sandbox))
        });
        addressed.node.host_ips = ips(host);
        let status = addressed.status();
        let got: Vec<_> = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str()).collect();
        assert_eq!(got, expected);
        assert_eq!(status.pod_ip.as_deref(), expected.first().copied());
        assert_eq!(status.host_ip.as_deref(), host.first().copied());
    }
}

#[test]
fn a_pod_on_the_nodes_network_has_the_nodes_addresses() {
    let pod = pod().regular("app").host_network().build();
    let mut host = status_fixture(pod, |view| view.sandbox());
    host.node.host_ips = vec!["192.168.0.1".to_owned(), "fd00::1".to_owned()];
    let status = host.status();
    let pod_ips: Vec<_> = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str()).collect();
    let host_ips: Vec<_> = status.host_ips.iter().flatten().map(|ip| ip.ip.as_str()).collect();
    assert_eq!(pod_ips, ["192.168.0.1", "fd00::1"]);
    assert_eq!(host_ips, pod_ips);
}

#[test]
fn addresses_are_kept_while_no_sandbox_is_ready() {
    let ran = status_fixture(one("Always"), |view| view.sandbox());
    let rows = [
        ("gone", ran.then(|view| view), Some("10.0.0.0")),
        (
            "stopped",
            ran.then(|view| view.dead_sandbox().edit_sandbox(|s| s.ips.clear())),
            Some("10.0.0.0"),
        ),
        ("another, without", ran.then(|view| view.sandbox().edit_sandbox(|s| s.ips.clear())), None),
    ];
    for (case, status_fixture, expected) in rows {
        assert_eq!(status_fixture.status().pod_ip.as_deref(), expected, "{case}");
    }
}

#[test]
fn a_pod_whose_last_init_container_is_a_sidecar_has_initialised_once_that_has_started() {
    let pod = pod().init("i").sidecar("s").regular("app").build();
    let unknown = "ended 137 ContainerStatusUnknown";
    let rows = [
        ("runs", view(&pod).sandbox().exited("i", 0).running("s"), unknown),
        // That a sidecar exits with 0 says nothing of the pod.
        ("ended", view(&pod).sandbox().exited("i", 0).exited("s", 0), "waiting PodInitializing"),
    ];
    for (case, held, expected) in rows {
        let status =
            status_fixture(pod.clone(), |_| held).termination(TerminationStage::Released).status();
        assert_eq!(container_state(&status, "app").0, expected, "{case}");
    }
}
