//! postStart hooks, and the order in which a pod's containers start, by the world's trace.

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use oarsman_core::event::EventKind;
use oarsman_sim::scenario::{
    CREATED_AT, ScenarioLog, container, delete, events_with_reason, exec, pod, run_pod, sidecar,
    sleep, start_failures, with_post_start, with_pre_stop,
};
use oarsman_sim::{SimulationResult, invariants};

const FOREVER: &[&str] = &["forever"];

/// A container whose program does not exist.
fn broken(name: &str) -> Container {
    Container { command: Some(vec!["/nowhere".to_owned()]), ..container(name, &[]) }
}

fn condition<'a>(result: &'a SimulationResult, type_: &str) -> Vec<(u64, &'a str)> {
    let of = |conditions: &'a Option<Vec<_>>| -> Option<&'a str> {
        let mut all = conditions.iter().flatten();
        all.find(|c: &&k8s_openapi::api::core::v1::PodCondition| c.type_ == type_)
            .map(|c| c.status.as_str())
    };
    let said = result.statuses.iter();
    said.filter_map(|published| Some((published.at.as_secs(), of(&published.status.conditions)?)))
        .collect()
}

#[test]
fn the_next_container_starts_when_the_hook_has_returned() {
    let hooks = [exec(&["sleep:7s"]), sleep(7)];
    for hook in hooks {
        let first = with_post_start(container("a", FOREVER), hook.clone());
        let result = run_pod(pod(vec![], vec![first, container("b", FOREVER)], 30), &[]).unwrap();
        let log = ScenarioLog::of(&result);
        assert_eq!(log.out_of_order(&["a#0 started", "CreateContainer sandbox#0 b#0"]), None);
        assert_eq!(log.when("a#0 started"), Some(CREATED_AT), "{hook:?}");
        assert_eq!(log.when("CreateContainer sandbox#0 b#0"), Some(CREATED_AT + 7), "{hook:?}");
        assert_eq!(invariants::check(&result), []);
    }
}

#[test]
fn the_container_after_a_sidecar_starts_when_its_hook_has_returned() {
    let first = sidecar(with_post_start(container("s", FOREVER), sleep(7)));
    let init = vec![first, container("i", &["exit:0"])];
    let result = run_pod(pod(init, vec![container("a", FOREVER)], 30), &[]).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("CreateContainer sandbox#0 i#0"), Some(CREATED_AT + 7));
    assert_eq!(log.out_of_order(&["s#0 started", "i#0 exited with 0", "a#0 started"]), None);
}

#[test]
fn a_sleep_of_zero_seconds_ends_at_once() {
    let first = with_post_start(with_pre_stop(container("a", FOREVER), sleep(0)), sleep(0));
    let result =
        run_pod(pod(vec![], vec![first, container("b", FOREVER)], 30), &[(60, delete(None))])
            .unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("b#0 started"), Some(CREATED_AT));
    assert_eq!(log.when("StopContainer a#0 30s"), Some(60));
    assert_eq!(events_with_reason(&result, "FailedPostStartHook"), []);
    assert_eq!(events_with_reason(&result, "FailedPreStopHook"), []);
}

#[test]
fn an_init_container_that_cannot_start_ends_the_sync_and_any_other_does_not() {
    let regular = vec![broken("a"), container("b", FOREVER)];
    let result = run_pod(pod(vec![broken("i")], regular.clone(), 30), &[]).unwrap();
    let log = ScenarioLog::of(&result);
    assert!(log.when("StartContainer i#0").is_some());
    assert_eq!(log.when("b#0"), None, "the init container comes first");
    assert_eq!(start_failures(&result, "i")[0].1, "RunContainerError");

    let result = run_pod(pod(vec![], regular, 30), &[]).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.out_of_order(&["StartContainer a#0", "StartContainer b#0"]), None);
    assert_eq!(
        (log.when("StartContainer a#0"), log.when("b#0 started")),
        (Some(CREATED_AT), Some(CREATED_AT))
    );
}

#[test]
fn a_sidecar_whose_hook_fails_holds_up_what_comes_after_it_and_nothing_before() {
    let init = vec![
        sidecar(container("s", FOREVER)),
        sidecar(with_post_start(container("t", FOREVER), exec(&["exit:1"]))),
    ];
    let result = run_pod(pod(init, vec![container("a", FOREVER)], 2), &[]).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.out_of_order(&["s#0 started", "t#0 started", "t#0 sent signal 15"]), None);
    assert_eq!(log.when("a#0"), None, "the second sidecar never gets past its hook");
    assert_eq!(log.when("s#0 sent signal"), None);
}

#[test]
fn a_sandbox_is_reported_as_ready_before_its_containers_have_started() {
    let first = with_post_start(container("a", FOREVER), sleep(7));
    let result = run_pod(pod(vec![], vec![first], 30), &[]).unwrap();
    let ready = condition(&result, "PodReadyToStartContainers");
    let first = ready.iter().find(|(_, status)| *status == "True").expect("it was never said");
    assert!((CREATED_AT..=CREATED_AT + 1).contains(&first.0), "{ready:?}");
    let order = ["sandbox#0 started", "object published as Pending", "object published as Running"];
    assert_eq!(ScenarioLog::of(&result).out_of_order(&order), None);
}

#[test]
fn a_container_whose_hook_fails_is_stopped_like_any_other() {
    let hooked =
        with_post_start(container("a", FOREVER), exec(&["sleep:3s", "err:no luck", "exit:4"]));
    let hooked = with_pre_stop(hooked, exec(&["sleep:5s"]));
    let result = run_pod(pod(vec![], vec![hooked, container("b", FOREVER)], 30), &[]).unwrap();
    let log = ScenarioLog::of(&result);
    let order = [
        "a#0 started",
        "ExecSync a#0 [\"/script\", \"sleep:3s\"",
        "ExecSync a#0 [\"/script\", \"sleep:5s\"",
        "a#0 sent signal 15",
        "b#0 started",
    ];
    assert_eq!(log.out_of_order(&order), None);
    assert_eq!(log.when("StopContainer a#0 25s"), Some(CREATED_AT + 8), "{log:?}");

    let warned = events_with_reason(&result, "FailedPostStartHook")[0];
    assert_eq!((warned.0, warned.1.kind), (CREATED_AT + 3, EventKind::Warning));
    assert_eq!(warned.1.message, "PostStartHook failed");
    assert_eq!(warned.1.field_path.as_deref(), Some("spec.containers{a}"));
    let killed = events_with_reason(&result, "Killing")[0];
    assert_eq!((killed.0, killed.1.kind), (CREATED_AT + 3, EventKind::Normal));
    assert_eq!(killed.1.message, "FailedPostStartHook");

    let (at, reason, message) = start_failures(&result, "a")[0].clone();
    assert_eq!((at, reason.as_str()), (CREATED_AT + 8, "PostStartHookError"));
    assert!(message.contains("exited with 4") && message.contains("no luck"), "{message}");
}

#[test]
fn a_container_whose_hook_fails_is_started_again_as_often_as_its_policy_and_its_back_off_allow() {
    let starts = |policy: &str| {
        let mut pod =
            pod(vec![], vec![with_post_start(container("a", FOREVER), exec(&["exit:1"]))], 2);
        pod.spec.get_or_insert_default().restart_policy = Some(policy.to_owned());
        let result = run_pod(pod, &[]).unwrap();
        let log = ScenarioLog::of(&result);
        let starts = log.all("a#").filter(|(_, line)| line.ends_with("started"));
        let starts: Vec<u64> = starts.map(|(at, _)| at).collect();
        (starts, start_failures(&result, "a"))
    };
    let (always, troubles) = starts("Always");
    assert!(always[1] - always[0] <= 1, "the first restart is free: {always:?}");
    for (pair, wait) in always[1..].windows(2).zip([10, 20, 40, 80, 160]) {
        let waited = pair[1] - pair[0];
        assert!((wait..=wait + wait / 2 + 1).contains(&waited), "{waited} for {wait}: {always:?}");
    }
    let reasons: Vec<&str> = troubles.iter().map(|(_, reason, _)| reason.as_str()).collect();
    assert!(reasons.starts_with(&["PostStartHookError", "CrashLoopBackOff"]), "{reasons:?}");
    let (never, _) = starts("Never");
    assert_eq!(never, [1]);
}

#[test]
fn hooks_that_cannot_be_run_fail_and_say_why() {
    let socket = TCPSocketAction { port: IntOrString::Int(80), ..TCPSocketAction::default() };
    let socket = LifecycleHandler { tcp_socket: Some(socket), ..LifecycleHandler::default() };
    let missing = LifecycleHandler {
        exec: Some(k8s_openapi::api::core::v1::ExecAction {
            command: Some(vec!["/nowhere".to_owned()]),
        }),
        ..LifecycleHandler::default()
    };
    let rows = [
        (socket, "tcpSocket hooks are not supported"),
        (LifecycleHandler::default(), "the hook names no action"),
        (missing, "no such file"),
    ];
    for (hook, why) in rows {
        let result =
            run_pod(pod(vec![], vec![with_post_start(container("a", FOREVER), hook)], 2), &[]);
        let (_, reason, message) = start_failures(&result.unwrap(), "a")[0].clone();
        assert_eq!(reason, "PostStartHookError");
        assert!(message.contains(why), "{message} lacks {why}");
    }
}

#[test]
fn a_pod_that_is_deleted_while_a_hook_runs_does_not_wait_for_it() {
    let hooked = with_post_start(container("a", FOREVER), exec(&["sleep:100s"]));
    let regular = vec![with_pre_stop(hooked, exec(&["sleep:2s"])), container("b", FOREVER)];
    let result = run_pod(pod(vec![], regular, 30), &[(21, delete(None))]).unwrap();
    let log = ScenarioLog::of(&result);
    let abandoned = "ExecSync a#0 [\"/script\", \"sleep:100s\"] was abandoned";
    assert_eq!(log.when(abandoned), Some(21));
    assert_eq!(log.when("ExecSync a#0 [\"/script\", \"sleep:2s\"]"), Some(21));
    assert_eq!(log.when("StopContainer a#0 28s"), Some(23));
    assert_eq!(log.when("b#0"), None);
    assert_eq!(events_with_reason(&result, "FailedPostStartHook"), []);
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn a_container_that_ends_while_its_hook_runs_is_not_stopped_on_top() {
    let ends = container("a", &["sleep:2s", "exit:0"]);
    let hooked = with_pre_stop(with_post_start(ends, exec(&["sleep:9s"])), sleep(20));
    let mut pod = pod(vec![], vec![hooked, container("b", FOREVER)], 30);
    pod.spec.get_or_insert_default().restart_policy = Some("Never".to_owned());
    let result = run_pod(pod, &[]).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(events_with_reason(&result, "FailedPostStartHook").len(), 1);
    assert_eq!(events_with_reason(&result, "Killing"), []);
    assert_eq!(log.when("StopContainer a#0"), None);
    assert_eq!(log.when("b#0 started"), Some(CREATED_AT + 2), "nobody rests for one that is gone");
}
