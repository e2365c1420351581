//! When a pod needs another sandbox, and what is started in it.

use super::*;
use crate::event::PodEvent;
use crate::fixture::{PodBuilder, pod};
use crate::pod::ContainerKind;

fn app() -> PodBuilder {
    pod().regular("app")
}

#[test]
fn a_new_sandbox_is_needed_for_these_reasons_and_no_other() {
    let plain = app().build();
    let host = app().host_network().build();
    let off = |s: &mut crate::view::SandboxView| s.ready = false;
    let rows = [
        (&plain, view(&plain), Some((SandboxChange::Missing, 0))),
        (&plain, view(&plain).sandbox(), None),
        (&plain, view(&plain).dead_sandbox().sandbox(), None),
        (&plain, view(&plain).dead_sandbox(), Some((SandboxChange::NotReady, 1))),
        (&plain, view(&plain).sandbox().dead_sandbox(), Some((SandboxChange::NotReady, 2))),
        (&plain, view(&plain).sandbox().sandbox(), None),
        (&plain, view(&plain).sandbox().sandbox().running("app"), None),
        (
            &plain,
            view(&plain).sandbox().running("app").sandbox(),
            Some((SandboxChange::SeveralReady, 2)),
        ),
        (&plain, view(&host).sandbox(), Some((SandboxChange::Network, 1))),
        (&host, view(&plain).sandbox(), Some((SandboxChange::Network, 1))),
        (&host, view(&host).sandbox(), None),
        (
            &plain,
            view(&plain).sandbox().edit_sandbox(|s| s.ips.clear()),
            Some((SandboxChange::NoAddress, 1)),
        ),
        // A runtime that says nothing of the network may have set it up all the same.
        (
            &plain,
            view(&plain).sandbox().edit_sandbox(|s| {
                s.ips.clear();
                s.network_reported = false;
            }),
            None,
        ),
        (
            &plain,
            view(&plain).sandbox().edit_sandbox(|s| s.attempt = 6).edit_sandbox(off),
            Some((SandboxChange::NotReady, 7)),
        ),
    ];
    for (pod, view, expected) in rows {
        let change = pod_sandbox_changed(pod, &view.build()).map(|new| (new.why, new.attempt));
        assert_eq!(change, expected);
    }
}

/// An agent was killed while the runtime made the first: its successor made the second, and then both became ready.
#[test]
fn an_empty_sandbox_that_is_ready_beside_the_newest_is_stopped_and_containers_go_on() {
    let pod = app().build();
    let two = || view(&pod).sandbox().sandbox();
    check([
        ("it runs in the newest", pod.clone(), two().running("app").build(), "stop sandbox-0"),
        ("nothing runs yet", pod.clone(), two().build(), "stop sandbox-0; start app"),
        (
            "it runs in the older one",
            pod.clone(),
            view(&pod).sandbox().running("app").sandbox().build(),
            "stop app-0 (Pod, again); stop sandbox-1; stop sandbox-0; create 2; start app#1",
        ),
    ]);
}

#[test]
fn a_pod_begins_with_its_sandbox_and_its_first_container() {
    let plain = app().regular("log").build();
    let with_init = app().init("a").init("b").build();
    check([
        (
            "all regular ones at once",
            plain.clone(),
            view(&plain).build(),
            "create 0; start app; start log",
        ),
        (
            "the first init container",
            with_init.clone(),
            view(&with_init).build(),
            "create 0; start a",
        ),
    ]);
}

#[test]
fn a_new_sandbox_starts_the_pod_from_the_beginning() {
    let always = app().build();
    let with_init = pod().sidecar("s").init("i").regular("app").build();
    let lost = view(&with_init).dead_sandbox().exited("s", 255).exited("i", 0).exited("app", 255);
    let half = view(&always).sandbox().running("app").sandbox();
    let rebooted = view(&always).dead_sandbox().exited("app", 255);
    check([
        (
            "a node that was rebooted",
            always.clone(),
            rebooted.build(),
            "stop sandbox-0; create 1; start app#1",
        ),
        (
            "what runs in the old one is stopped first, and every sandbox",
            always,
            half.build(),
            "stop app-0 (Pod, again); stop sandbox-1; stop sandbox-0; create 2; start app#1",
        ),
        (
            "init containers and sidecars are removed and begin again",
            with_init,
            lost.build(),
            "stop sandbox-0; remove i-0; remove s-0; create 1; start s#1",
        ),
    ]);
}

#[test]
fn containers_that_are_not_to_run_again_are_skipped_and_with_none_left_the_pod_is_over() {
    let on_failure = app().regular("job").policy("OnFailure").build();
    let never = app().policy("Never").build();
    let two = app().regular("late").policy("Never").build();
    let own = pod().regular_with("app", |c| c.restart_policy = Some("OnFailure".into()));
    let own = own.regular("log").build();
    let willing = pod().policy("Never");
    let willing = willing.regular_with("app", |c| c.restart_policy = Some("Always".into())).build();
    let succeeded = |pod| view(pod).dead_sandbox().exited("app", 0);
    check([
        (
            "OnFailure and success",
            on_failure.clone(),
            succeeded(&on_failure).exited("job", 1).build(),
            "stop sandbox-0; create 1; start job#1",
        ),
        (
            "OnFailure of the container's own",
            own.clone(),
            succeeded(&own).exited("log", 0).build(),
            "stop sandbox-0; create 1; start log#1",
        ),
        (
            "OnFailure and all succeeded",
            on_failure.clone(),
            succeeded(&on_failure).exited("job", 0).build(),
            "over NothingToRun",
        ),
        ("Never and ended", never.clone(), succeeded(&never).build(), "over NothingToRun"),
        (
            "Never and still running in a sandbox that will not do",
            never.clone(),
            view(&never).sandbox().edit_sandbox(|s| s.ips.clear()).running("app").build(),
            "stop app-0 (Pod); stop sandbox-0; over NothingToRun",
        ),
        (
            "Never and begun, though one was never made",
            two.clone(),
            succeeded(&two).build(),
            "over SandboxLost",
        ),
        (
            "Never, but no container was ever made",
            never.clone(),
            view(&never).dead_sandbox().build(),
            "stop sandbox-0; create 1; start app",
        ),
        (
            "Never, but the container has a will of its own",
            willing.clone(),
            succeeded(&willing).build(),
            "stop sandbox-0; create 1; start app#1",
        ),
    ]);
}

#[test]
fn an_init_container_that_failed_for_good_stays_failed_when_its_sandbox_is_gone() {
    let pod = app().init_with("i", |c| c.restart_policy = Some("Never".into())).build();
    let view = view(&pod).dead_sandbox().exited("i", 1).build();
    check([("own policy Never", pod, view, "over InitFailed(\"i\")")]);
}

#[test]
fn an_event_has_the_reason_for_a_replaced_sandbox_and_none_is_sent_for_the_first() {
    let pod = app().build();
    let first = ActionsFixture::of(pod.clone(), view(&pod).build()).actions();
    assert_eq!(first.events, []);
    let replaced = ActionsFixture::of(pod.clone(), view(&pod).dead_sandbox().build()).actions();
    let message = "Pod sandbox changed (it is not ready), it is stopped and made anew";
    assert_eq!(replaced.events, [PodEvent::normal("SandboxChanged", message)]);
}

#[test]
fn in_a_new_sandbox_a_container_in_back_off_still_waits() {
    let pod = app().build();
    let view = view(&pod).dead_sandbox().exited("app", 1).exited_at("app", 1, 995).build();
    let mut fixture = ActionsFixture::of(pod, view);
    fixture.backoff = waits::after_restarts(&fixture.pod, 1);
    assert_eq!(fixture.describe_actions(), "stop sandbox-0; remove app-0; create 1; wait app 10s");
}

#[test]
fn to_be_stopped_with_its_sandbox_is_not_to_crash() {
    let pod = app().build();
    let view = view(&pod).sandbox().edit_sandbox(|s| s.ips.clear()).exited_at("app", 1, 995);
    let mut fixture = ActionsFixture::of(pod, view.running("app").build());
    fixture.backoff = waits::after_restarts(&fixture.pod, 1);
    let actions = fixture.actions();
    let expected = "stop app-1 (Pod, again); stop sandbox-0; remove app-0; create 1; start app#2";
    assert_eq!(describe(&actions), expected);
    assert_eq!(actions.crashes, []);
}

#[test]
fn a_sandbox_that_will_do_is_kept_and_named() {
    let pod = app().build();
    let actions = ActionsFixture::of(pod.clone(), view(&pod).sandbox().build()).actions();
    assert_eq!(actions.sandbox, SandboxAction::Keep("sandbox-0".into()));
    assert_eq!(actions.start.first().map(|start| start.kind), Some(ContainerKind::Regular));
}
