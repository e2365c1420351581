//! The phase: what containers, verdicts, deadlines and the past make of it.

use k8s_openapi::api::core::v1::{ContainerRestartRule, ContainerRestartRuleOnExitCodes};

use super::*;

fn phase(status_fixture: &StatusFixture) -> String {
    status_fixture.status().phase.unwrap()
}

fn two(policy: &str) -> Pod {
    pod().policy(policy).regular("a").regular("b").build()
}

#[test]
fn regular_containers_make_the_phase() {
    let held = |pod: &Pod| view(pod).sandbox();
    let (always, failure, never) = (two("Always"), two("OnFailure"), two("Never"));
    let rows = [
        ("nothing made", &always, held(&always), "Pending"),
        ("one not made", &always, held(&always).running("a"), "Pending"),
        ("one only created", &always, held(&always).running("a").created("b"), "Pending"),
        ("both run", &always, held(&always).running("a").running("b"), "Running"),
        ("one runs", &never, held(&never).running("a").exited("b", 1), "Running"),
        ("both ended, Always", &always, held(&always).exited("a", 0).exited("b", 0), "Running"),
        (
            "both well, OnFailure",
            &failure,
            held(&failure).exited("a", 0).exited("b", 0),
            "Succeeded",
        ),
        ("one badly, OnFailure", &failure, held(&failure).exited("a", 0).exited("b", 1), "Running"),
        ("both well, Never", &never, held(&never).exited("a", 0).exited("b", 0), "Succeeded"),
        ("one badly, Never", &never, held(&never).exited("a", 0).exited("b", 1), "Failed"),
    ];
    for (case, pod, held, expected) in rows {
        assert_eq!(phase(&status_fixture(pod.clone(), |_| held)), expected, "{case}");
    }
}

#[test]
fn a_container_in_unknown_state_has_ended_if_it_ran_and_waits_if_it_did_not() {
    let both = |view: ViewBuilder| view.sandbox().running("a").running("b");
    let rows = [
        (
            "never seen to run",
            status_fixture(two("Always"), |v| v.sandbox().running("a").unknown("b")),
            "Pending",
        ),
        (
            "ran, the other runs",
            status_fixture(two("Never"), both).then(|v| v.sandbox().running("a").unknown("b")),
            "Running",
        ),
        (
            "ran, comes again",
            status_fixture(two("Always"), both).then(|v| v.sandbox().exited("a", 0).unknown("b")),
            "Running",
        ),
        (
            "ran, and the other ended well",
            status_fixture(two("Never"), both).then(|v| v.sandbox().exited("a", 0).unknown("b")),
            "Failed",
        ),
    ];
    for (case, status_fixture, expected) in rows {
        assert_eq!(phase(&status_fixture), expected, "{case}");
    }
}

#[test]
fn a_container_waiting_for_its_restart_does_not_make_the_pod_pending() {
    let crashed = status_fixture(one("Always"), |view| view.sandbox().exited("app", 1));
    assert_eq!(phase(&crashed.failing("app", StartReason::CrashLoopBackOff)), "Running");
    let vanished = status_fixture(one("Always"), |view| view.sandbox().running("app"))
        .then(|view| view.sandbox());
    assert_eq!(phase(&vanished), "Running");
}

#[test]
fn the_containers_own_policy_and_rules_count_before_the_pods() {
    let rule = |action: &str| ContainerRestartRule {
        action: action.to_owned(),
        exit_codes: Some(ContainerRestartRuleOnExitCodes {
            operator: "In".to_owned(),
            values: Some(vec![42]),
        }),
    };
    let rows = [
        ("Never", Some("Always"), None, 1, "Running"),
        ("Always", Some("Never"), None, 1, "Failed"),
        ("Always", Some("OnFailure"), None, 0, "Succeeded"),
        ("Never", None, Some("Restart"), 42, "Running"),
        ("Never", None, Some("Restart"), 41, "Failed"),
        ("Never", None, Some("RestartAllContainers"), 42, "Running"),
    ];
    for (policy, own, action, code, expected) in rows {
        let edit = |spec: &mut k8s_openapi::api::core::v1::Container| {
            spec.restart_policy = own.map(ToOwned::to_owned);
            spec.restart_policy_rules = action.map(|action| vec![rule(action)]);
        };
        let pod = pod().policy(policy).regular_with("app", edit).build();
        let ended = status_fixture(pod, |view| view.sandbox().exited("app", code));
        assert_eq!(phase(&ended), expected, "{policy} {own:?} {action:?} {code}");
    }
}

#[test]
fn init_containers_hold_the_pod_pending_and_fail_it_when_they_fail_for_good() {
    let of = |policy: &str| pod().policy(policy).init("i").regular("app").build();
    let (always, never) = (of("Always"), of("Never"));
    let held = |pod: &Pod| view(pod).sandbox();
    let rows = [
        ("runs", &never, held(&never).running("i"), "Pending"),
        ("done", &never, held(&never).exited("i", 0), "Pending"),
        ("done, and all runs", &never, held(&never).exited("i", 0).running("app"), "Running"),
        ("failed, to be tried again", &always, held(&always).exited("i", 1), "Pending"),
        ("failed for good", &never, held(&never).exited("i", 1), "Failed"),
        ("lost, and all runs", &never, held(&never).running("app"), "Running"),
    ];
    for (case, pod, held, expected) in rows {
        assert_eq!(phase(&status_fixture(pod.clone(), |_| held)), expected, "{case}");
    }
}

#[test]
fn a_sidecar_holds_the_pod_pending_until_it_is_up_and_does_not_keep_it_from_ending() {
    use k8s_openapi::api::core::v1::Probe;
    let pod =
        pod().policy("Never").sidecar_with("s", |spec| spec.startup_probe = Some(Probe::default()));
    let pod = pod.regular("app").build();
    let held = || view(&pod).sandbox();
    let rows = [
        ("not made", held(), "Pending"),
        ("not up", held().running("s"), "Pending"),
        ("restarting, and all runs", held().exited("s", 1).running("app"), "Running"),
        (
            "not up again, and all runs",
            held().exited("s", 1).running("app").running("s"),
            "Running",
        ),
        ("runs, and all ended", held().running("s").exited("app", 0), "Running"),
        ("ended badly, and all ended well", held().exited("s", 137).exited("app", 0), "Succeeded"),
        ("ended well, and all ended badly", held().exited("s", 0).exited("app", 1), "Failed"),
    ];
    for (case, held, expected) in rows {
        assert_eq!(phase(&status_fixture(pod.clone(), |_| held)), expected, "{case}");
    }
}

#[test]
fn a_pod_with_init_containers_begins_anew_in_a_new_sandbox() {
    let pod = pod().init("i").regular("app").build();
    let ran = status_fixture(pod, |view| view.sandbox().exited("i", 0).running("app"));
    let anew = ran.then(|view| {
        let view = view.dead_sandbox().exited("app", 137);
        view.sandbox().running("i").edit_container(another)
    });
    assert_eq!((phase(&ran).as_str(), phase(&anew).as_str()), ("Running", "Pending"));
}

#[test]
fn a_pod_that_nothing_runs_of_has_ended_whatever_its_policy() {
    let pod = two("Always");
    let held = || view(&pod).sandbox();
    let rows = [
        (held().exited("a", 0).exited("b", 0), "Succeeded"),
        (held().exited("a", 0).exited("b", 1), "Failed"),
        (held().exited("a", 0), "Failed"),
        (held(), "Failed"),
    ];
    for (held, expected) in rows {
        let ended = status_fixture(pod.clone(), |_| held);
        let not_yet = ended.clone().termination(TerminationStage::Terminating);
        assert!(
            ["Running", "Pending"].contains(&phase(&not_yet).as_str()),
            "while it is being stopped"
        );
        assert_eq!(phase(&ended.clone().termination(TerminationStage::Stopped)), expected);
        assert_eq!(phase(&ended.termination(TerminationStage::Released)), expected);
    }
}

#[test]
fn a_static_pod_does_not_end() {
    let source = BTreeMap::from([(crate::pod::SOURCE_ANNOTATION.to_owned(), "file".to_owned())]);
    let pod = pod().regular("app").edit(|pod| pod.metadata.annotations = Some(source)).build();
    let stopped = status_fixture(pod, |view| view.sandbox().exited("app", 0));
    assert_eq!(phase(&stopped.termination(TerminationStage::Released)), "Running");
}

#[test]
fn what_has_ended_stays_ended() {
    let runs = status_fixture(one("Always"), |view| view.sandbox().running("app"));
    for last in ["Succeeded", "Failed"] {
        let mut ended = PodStatus { phase: Some(last.to_owned()), ..PodStatus::default() };
        ended.reason = Some("Evicted".to_owned());
        let by_us = runs.clone().after(ended.clone()).status();
        assert_eq!(
            (by_us.phase.as_deref(), by_us.reason.as_deref()),
            (Some(last), Some("Evicted"))
        );
        let mut by_api = runs.clone();
        by_api.pod.status = Some(ended);
        assert_eq!(phase(&by_api), last);
        by_api.failure = Some(PodFailure::disrupted("Evicted", "too much"));
        assert_eq!(phase(&by_api), last, "a verdict comes too late");
    }
}

#[test]
fn a_failure_sets_phase_reason_and_message_for_good() {
    let rows = [
        ("Evicted", "The node was low on resource: memory."),
        ("Preempting", "Preempted in order to admit critical pod"),
        ("Terminated", "Pod was terminated in response to imminent node shutdown."),
    ];
    for (reason, message) in rows {
        let mut cut = status_fixture(one("Always"), |view| view.sandbox().running("app"));
        cut.failure = Some(PodFailure::disrupted(reason, message));
        let later =
            StatusFixture { failure: None, ..cut.then(|view| view.sandbox().exited("app", 137)) };
        for status in [cut.status(), later.status()] {
            assert_eq!(status.phase.as_deref(), Some("Failed"));
            assert_eq!(status.reason.as_deref(), Some(reason));
            assert_eq!(status.message.as_deref(), Some(message));
        }
    }
}

#[test]
fn reason_and_message_belong_to_their_phase() {
    let describe_state = PodStatus {
        phase: Some("Pending".to_owned()),
        reason: Some("Because".to_owned()),
        ..PodStatus::default()
    };
    let pending = status_fixture(one("Always"), |view| view).after(describe_state.clone()).status();
    assert_eq!(pending.reason.as_deref(), Some("Because"));
    let running = status_fixture(one("Always"), |view| view.sandbox().running("app"))
        .after(describe_state)
        .status();
    assert_eq!(running.reason, None);
}

#[test]
fn a_pod_active_for_longer_than_its_deadline_fails() {
    let pod = |policy: &str| {
        pod()
            .policy(policy)
            .regular("app")
            .spec(|spec| spec.active_deadline_seconds = Some(10))
            .build()
    };
    let begun = |pod: Pod, held: fn(ViewBuilder) -> ViewBuilder| {
        let first = status_fixture(pod, held);
        StatusFixture { second: 60, ..first.then(held) }
    };
    let runs = begun(pod("Always"), |view| view.sandbox().running("app"));
    let status = runs.status();
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    let sentence = "Pod was active on the node longer than the specified deadline";
    assert_eq!(status.message.as_deref(), Some(sentence));
    assert_eq!(phase(&StatusFixture { second: 59, ..runs.clone() }), "Running");
    assert_eq!(
        phase(&runs.termination(TerminationStage::Terminating)),
        "Running",
        "it is on its way out already"
    );
    let mut ended = status_fixture(pod("Never"), |view| view.sandbox().exited("app", 0));
    ended.previous =
        Some(PodStatus { start_time: ended.status().start_time, ..PodStatus::default() });
    assert_eq!(phase(&StatusFixture { second: 99, ..ended }), "Succeeded", "it had ended in time");
}
