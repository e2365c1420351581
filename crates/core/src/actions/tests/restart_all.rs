//! Restarting all containers for an exit code.

use k8s_openapi::api::core::v1::{
    Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes,
};

use super::*;
use crate::fixture::{PodBuilder, ViewBuilder, pod};
use crate::grace::ContainerGracePeriod;

/// Exit code 42 restarts all.
fn on_42(container: &mut Container) {
    let codes =
        ContainerRestartRuleOnExitCodes { operator: "In".to_owned(), values: Some(vec![42]) };
    let action = "RestartAllContainers".to_owned();
    container.restart_policy = Some("Never".to_owned());
    container.restart_policy_rules =
        Some(vec![ContainerRestartRule { action, exit_codes: Some(codes) }]);
}

fn app() -> PodBuilder {
    pod().policy("Never").init("i").sidecar("s").regular_with("app", on_42).regular("log")
}

#[test]
fn all_are_stopped_and_removed_the_asking_one_last_and_the_pod_begins_again_in_its_sandbox() {
    let pod = app().build();
    let start = || view(&pod).sandbox().exited("i", 0).running("s");
    let row = |what, view: ViewBuilder, expected| (what, pod.clone(), view.build(), expected);
    check([
        row(
            "targets before the source",
            start().running("log").exited("app", 42),
            "stop log-0 (RestartAll, again); stop s-0 (RestartAll, again); \
             remove log-0; remove i-0; remove s-0; remove app-0; start i#1",
        ),
        row("another exit code does not", start().running("log").exited("app", 1), ""),
        row(
            "older ones of every name go too",
            start().exited("log", 0).exited("log", 0).exited("app", 1).exited("app", 42),
            "stop s-0 (RestartAll, again); remove app-0; remove log-1; remove log-0; remove i-0; \
             remove s-0; remove app-1; start i#1",
        ),
        row("nothing is left: it begins again", view(&pod).sandbox(), "start i"),
    ]);
}

#[test]
fn an_init_container_may_ask_too() {
    let pod = pod().init("a").init_with("b", on_42).regular("app").build();
    let view = view(&pod).sandbox().exited("a", 0).exited("b", 42).build();
    check([("init", pod, view, "remove a-0; remove b-0; start a#1")]);
}

#[test]
fn of_several_that_ask_regular_ones_go_before_init_containers_and_after_all_that_did_not_ask() {
    let pod = pod().policy("Never").init("i").init_with("j", on_42);
    let pod = pod.regular_with("app", on_42).regular("log").regular_with("web", on_42).build();
    let held = || view(&pod).sandbox().exited("i", 0);
    let row = |what, view: ViewBuilder, expected| (what, pod.clone(), view.build(), expected);
    check([
        row(
            "targets, then sources",
            held().exited("j", 42).exited("app", 42).exited("log", 0).exited("web", 42),
            "remove log-0; remove i-0; remove app-0; remove web-0; remove j-0; start i#1",
        ),
        row(
            "a run that did not ask is a target, also of a name that did",
            held().exited("j", 42).exited("j", 0).exited("app", 42).exited("web", 1),
            "remove web-0; remove i-0; remove j-1; remove app-0; remove j-0; start i#1",
        ),
    ]);
}

#[test]
fn without_init_containers_all_regular_ones_begin_again_and_ephemeral_ones_stay() {
    let pod = pod().policy("Never").regular_with("app", on_42).regular("log").ephemeral("debug");
    let pod = pod.build();
    let view = view(&pod).sandbox().exited("app", 42).exited("log", 0).running("debug").build();
    check([("regular", pod, view, "remove log-0; remove app-0; start app#1; start log#1")]);
}

#[test]
fn with_its_sandbox_gone_the_pod_begins_again_in_a_new_one() {
    let pod = pod().regular_with("app", on_42).regular("log").policy("OnFailure").build();
    let view = view(&pod).dead_sandbox().exited("log", 0).exited("app", 42).build();
    let expected = "stop sandbox-0; remove log-0; remove app-0; create 1; start app#1; start log#1";
    check([("also those that had succeeded", pod, view, expected)]);
}

#[test]
fn they_are_stopped_without_grace_or_hook_and_their_logs_are_kept() {
    let pod = app().build();
    let view = view(&pod).sandbox().running("log").exited("app", 42).build();
    let actions = ActionsFixture::of(pod, view).actions();
    let stop = &actions.stop[0];
    assert_eq!((stop.grace, stop.pre_stop.as_ref()), (ContainerGracePeriod::NONE, None));
    assert_eq!(stop.grace.stop_timeout(), 2);
    assert!(actions.remove.iter().all(|removal| removal.why.keeps_log()));
}

#[test]
fn a_container_that_asks_again_and_again_has_to_wait() {
    let pod = pod().regular_with("app", on_42).regular("log").build();
    let view = view(&pod).sandbox().running("log").exited_at("app", 42, 995).build();
    let mut fixture = ActionsFixture::of(pod, view);
    let first = fixture.actions();
    assert_eq!(first.crashes.len(), 1, "it counts as a crash of the one that asked");
    fixture.backoff = waits::after_restarts(&fixture.pod, 1);
    assert_eq!(fixture.describe_actions(), "wait app 10s", "the others run on");
}

#[test]
fn a_deleting_pod_is_not_restarted() {
    let pod = app().deleting(30).build();
    let view = view(&pod).sandbox().exited("app", 42).build();
    check([("deleting", pod, view, "stop sandbox-0; over Deleting")]);
}
