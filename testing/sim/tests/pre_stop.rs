//! preStop hooks, and the grace periods of containers, by the world's trace.

use oarsman_core::event::EventKind;
use oarsman_sim::scenario::{
    ScenarioLog, container, delete, events_with_reason, exec, pod, run_pod, sidecar, sleep,
    with_pre_stop,
};
use oarsman_sim::{ExternalAction, invariants};

const FOREVER: &[&str] = &["forever"];
const IGNORES_SIGTERM: &[&str] = &["on-term:ignore", "forever"];

/// The image of the first container is changed.
fn edit() -> ExternalAction {
    ExternalAction::Edit { pod: "p".to_owned(), container: 0 }
}

#[test]
fn what_the_hook_took_is_taken_from_the_grace_in_whole_seconds_and_two_are_left() {
    let rows = [
        (exec(&["sleep:12700ms"]), 30, 72, "StopContainer a#0 18s"),
        (exec(&["sleep:900ms"]), 30, 60, "StopContainer a#0 30s"),
        (sleep(28), 30, 88, "StopContainer a#0 2s"),
        (sleep(30), 30, 90, "StopContainer a#0 2s"),
        (exec(&["forever"]), 30, 90, "StopContainer a#0 2s"),
        (exec(&["forever"]), 1, 61, "StopContainer a#0 2s"),
        (sleep(0), 1, 60, "StopContainer a#0 2s"),
    ];
    for (hook, grace, at, stop) in rows {
        let hooked = with_pre_stop(container("a", IGNORES_SIGTERM), hook.clone());
        let result = run_pod(pod(vec![], vec![hooked], grace), &[(60, delete(None))]).unwrap();
        let log = ScenarioLog::of(&result);
        assert_eq!(log.when("StopContainer"), Some(at), "{hook:?} of {grace} s");
        assert_eq!(log.when(stop), Some(at), "{hook:?} of {grace} s");
        assert_eq!(invariants::check(&result), []);
    }
}

#[test]
fn a_failed_hook_gives_an_event_and_the_stop_goes_on() {
    let rows = [
        (exec(&["sleep:3s", "err:secret", "exit:1"]), 63, "StopContainer a#0 27s"),
        // It ends with the grace period.
        (exec(&["forever"]), 90, "StopContainer a#0 2s"),
    ];
    for (hook, at, stop) in rows {
        let hooked = with_pre_stop(container("a", FOREVER), hook);
        let result = run_pod(pod(vec![], vec![hooked], 30), &[(60, delete(None))]).unwrap();
        assert_eq!(ScenarioLog::of(&result).when(stop), Some(at));
        let warned = events_with_reason(&result, "FailedPreStopHook");
        assert_eq!((warned.len(), warned[0].0, warned[0].1.kind), (1, at, EventKind::Warning));
        assert_eq!(
            warned[0].1.message, "PreStopHook failed",
            "what it printed is not for everybody"
        );
        assert_eq!(warned[0].1.field_path.as_deref(), Some("spec.containers{a}"));
    }
}

#[test]
fn a_sleep_that_is_cut_short_has_not_failed() {
    let hooked = with_pre_stop(container("a", FOREVER), sleep(20));
    let result = run_pod(pod(vec![], vec![hooked], 30), &[(60, delete(Some(5)))]).unwrap();
    assert_eq!(ScenarioLog::of(&result).when("StopContainer a#0 2s"), Some(65));
    assert_eq!(events_with_reason(&result, "FailedPreStopHook"), []);
}

#[test]
fn without_grace_there_is_no_hook() {
    let hooked = with_pre_stop(container("a", FOREVER), exec(&["sleep:1s"]));
    let result = run_pod(pod(vec![], vec![hooked.clone()], 0), &[(60, edit())]).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!((log.when("ExecSync"), log.when("StopContainer a#0 2s")), (None, Some(60)));
    // The grace period of a pod that is deleted is at least one second.
    let result = run_pod(pod(vec![], vec![hooked], 0), &[(60, delete(None))]).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!((log.when("ExecSync"), log.when("StopContainer a#0 2s")), (Some(60), Some(61)));
}

#[test]
fn a_container_that_ended_by_itself_gets_no_hook_and_no_stop() {
    let ends = with_pre_stop(container("a", &["sleep:5s", "exit:0"]), exec(&["sleep:1s"]));
    let lasts = with_pre_stop(container("b", FOREVER), exec(&["sleep:1s"]));
    let mut pod = pod(vec![], vec![ends, lasts], 30);
    pod.spec.get_or_insert_default().restart_policy = Some("Never".to_owned());
    let result = run_pod(pod, &[(60, delete(None))]).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("a#0 exited with 0"), Some(6));
    assert_eq!(log.when("ExecSync a#0"), None);
    assert_eq!(log.when("StopContainer a#0"), None);
    assert_eq!((log.when("ExecSync b#0"), log.when("StopContainer b#0")), (Some(60), Some(61)));
    let killed = events_with_reason(&result, "Killing");
    let messages: Vec<_> = killed.iter().map(|(_, event)| event.message.as_str()).collect();
    assert_eq!(messages, ["Stopping container b"]);
}

#[test]
fn every_stop_gives_an_event_with_its_reason_before_the_hook_runs() {
    let hooked = with_pre_stop(container("a", FOREVER), sleep(4));
    let regular = vec![hooked, container("b", FOREVER)];
    let actions = [(60, edit()), (120, delete(None))];
    let result = run_pod(pod(vec![], regular, 30), &actions).unwrap();
    let told: Vec<_> = events_with_reason(&result, "Killing")
        .into_iter()
        .map(|(at, event)| (at, event.kind, event.message.as_str(), event.field_path.as_deref()))
        .collect();
    let (normal, a, b) =
        (EventKind::Normal, Some("spec.containers{a}"), Some("spec.containers{b}"));
    let changed = "Container a definition changed, will be restarted";
    assert_eq!(told[0], (60, normal, changed, a));
    assert!(told[1..].contains(&(120, normal, "Stopping container a", a)), "{told:?}");
    assert!(told[1..].contains(&(120, normal, "Stopping container b", b)), "{told:?}");
    assert_eq!(told.len(), 3);
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("StopContainer a#0 26s"), Some(64));
    assert_eq!(log.out_of_order(&["a#0 exited", "a#1 started"]), None);
}

#[test]
fn a_shortened_grace_period_counts_from_its_arrival_while_a_hook_runs() {
    // Five of thirty seconds are over when the grace period is shortened to three more.
    let hooked = with_pre_stop(container("a", IGNORES_SIGTERM), exec(&["sleep:20s"]));
    let actions = [(60, delete(None)), (65, delete(Some(3)))];
    let result = run_pod(pod(vec![], vec![hooked], 30), &actions).unwrap();
    let log = ScenarioLog::of(&result);
    let hooks: Vec<_> = log.all("ExecSync a#0").collect();
    assert_eq!(hooks.len(), 2, "begun once, given up once: {hooks:?}");
    assert_eq!((hooks[0].0, hooks[1].0), (60, 68));
    assert!(hooks[1].1.ends_with("was abandoned"), "{hooks:?}");
    assert_eq!(log.when("StopContainer"), Some(68));
    assert_eq!(log.when("StopContainer a#0 2s"), Some(68));
    assert_eq!(log.when("a#0 sent signal 9"), Some(70));
}

#[test]
fn a_shorter_grace_does_not_make_a_hook_longer_nor_a_stop_later() {
    // The hook ends before the shorter grace period does: the container gets the rest of it.
    let hooked = with_pre_stop(container("a", IGNORES_SIGTERM), exec(&["sleep:8s"]));
    let actions = [(60, delete(None)), (65, delete(Some(10))), (70, delete(Some(4)))];
    let result = run_pod(pod(vec![], vec![hooked], 30), &actions).unwrap();
    let log = ScenarioLog::of(&result);
    let stops: Vec<_> = log.all("StopContainer a#0").filter(|(_, l)| !l.contains("was")).collect();
    assert_eq!(stops[0], (68, "StopContainer a#0 7s"));
    assert_eq!(stops[1], (70, "StopContainer a#0 4s"));
    assert_eq!(log.when("a#0 sent signal 9"), Some(74));
}

#[test]
fn sidecars_end_in_reverse_order_after_all_others_and_their_hooks_run_at_once() {
    let slow: &[&str] = &["on-term:sleep:4s,exit:0", "forever"];
    let init = vec![
        sidecar(with_pre_stop(container("s", slow), exec(&["sleep:1s"]))),
        sidecar(with_pre_stop(container("t", slow), exec(&["sleep:2s"]))),
    ];
    let regular =
        vec![with_pre_stop(container("a", slow), exec(&["sleep:6s"])), container("b", slow)];
    let result = run_pod(pod(init, regular, 60), &[(60, delete(None))]).unwrap();
    let log = ScenarioLog::of(&result);
    for name in ["a", "s", "t"] {
        assert_eq!(log.when(&format!("ExecSync {name}#0")), Some(60), "{name}");
    }
    let rows = [("b#0 60s", 60), ("a#0 54s", 66), ("t#0 50s", 70), ("s#0 46s", 74)];
    for (stop, at) in rows {
        assert_eq!(log.when(&format!("StopContainer {stop}")), Some(at), "{stop}");
    }
    assert_eq!(log.when("StopPodSandbox"), Some(78));
    let killed = events_with_reason(&result, "Killing");
    assert!(killed.iter().all(|(at, event)| *at == 60 && event.kind == EventKind::Normal));
    let field = |name: &str| {
        let message = format!("Stopping container {name}");
        let (_, event) = killed.iter().find(|(_, event)| event.message == message).unwrap();
        event.field_path.clone().unwrap()
    };
    let fields = ["a", "b", "s", "t"].map(field);
    let expected = ["containers{a}", "containers{b}", "initContainers{s}", "initContainers{t}"];
    assert_eq!(fields, expected.map(|field| format!("spec.{field}")));
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn sidecars_wait_no_longer_than_the_grace_and_have_two_seconds_all_the_same() {
    let init =
        vec![sidecar(container("s", IGNORES_SIGTERM)), sidecar(container("t", IGNORES_SIGTERM))];
    let regular = vec![container("a", IGNORES_SIGTERM)];
    let result = run_pod(pod(init, regular, 10), &[(60, delete(None))]).unwrap();
    let log = ScenarioLog::of(&result);
    // The regular container is killed in the second in which the wait ends.
    let rows = [("a#0 10s", 60), ("t#0 2s", 70), ("s#0 2s", 70)];
    for (stop, at) in rows {
        assert_eq!(log.when(&format!("StopContainer {stop}")), Some(at), "{stop}");
    }
    for (name, at) in [("a", 70), ("t", 72), ("s", 72)] {
        assert_eq!(log.when(&format!("{name}#0 sent signal 9")), Some(at), "{name}");
    }
    assert_eq!(log.when("StopPodSandbox"), Some(72));
}

#[test]
fn a_sidecars_hook_and_its_waiting_share_one_grace_period() {
    // The hook takes seven of ten seconds, the wait the rest.
    let init = vec![sidecar(with_pre_stop(container("s", FOREVER), exec(&["sleep:7s"])))];
    let result =
        run_pod(pod(init, vec![container("a", IGNORES_SIGTERM)], 10), &[(60, delete(None))])
            .unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("ExecSync s#0"), Some(60));
    assert_eq!(log.when("StopContainer s#0 2s"), Some(70));
}

#[test]
fn the_hook_of_an_orphan_runs_and_its_stop_gives_an_event() {
    let hooked = with_pre_stop(container("a", FOREVER), exec(&["sleep:300ms"]));
    let gone = ExternalAction::WhileAgentDown(Box::new(delete(Some(0))));
    let result = run_pod(pod(vec![], vec![hooked], 30), &[(60, gone)]).unwrap();
    let log = ScenarioLog::of(&result);
    // The restarted agent has only the annotations of the container.
    assert_eq!(log.when("object deleted by a user"), Some(60));
    let order = ["ExecSync a#0 [\"/script\", \"sleep:300ms\"] is fine", "StopContainer a#0 2s"];
    assert_eq!(log.out_of_order(&order), None);
    let killed = events_with_reason(&result, "Killing");
    assert_eq!(killed.len(), 1);
    assert_eq!(killed[0].1.message, "Stopping container a");
}

#[test]
fn a_restart_of_the_agent_changes_nothing_about_hooks() {
    let hooked = with_pre_stop(container("a", FOREVER), exec(&["sleep:3s"]));
    let regular = vec![hooked, container("b", FOREVER)];
    let restart = ExternalAction::WhileAgentDown(Box::new(delete(None)));
    let result = run_pod(pod(vec![], regular, 30), &[(60, restart)]).unwrap();
    let log = ScenarioLog::of(&result);
    assert_eq!(log.when("ExecSync a#0"), Some(62));
    assert_eq!(log.when("StopContainer a#0 27s"), Some(65));
    assert_eq!(invariants::check(&result), []);
}
