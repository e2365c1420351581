//! Init containers and sidecars.

use super::*;
use crate::fixture::{PodBuilder, pod};

fn two() -> PodBuilder {
    pod().init("a").init("b").regular("app")
}

#[test]
fn init_containers_run_one_at_a_time_to_a_good_end() {
    let pod = two().build();
    let at = |view: crate::fixture::ViewBuilder| view.build();
    let start = || view(&pod).sandbox();
    let row = |what, view, expected| (what, pod.clone(), at(view), expected);
    check([
        row("none yet", start(), "start a"),
        row("the first runs", start().running("a"), ""),
        row("the first is done", start().exited("a", 0), "start b"),
        row("the second runs", start().exited("a", 0).running("b"), ""),
        row("both are done", start().exited("a", 0).exited("b", 0), "start app"),
        row("the first was lost since", start().exited("b", 0), "start app"),
        row("the first failed", start().exited("a", 1), "start a#1"),
        row("the first was made and not started", start().created("a"), "remove a-0; start a#1"),
        row(
            "the state of the first is unknown",
            start().unknown("a"),
            "stop a-0 (Unknown, again); remove a-0; start a#1",
        ),
        row(
            "an earlier sandbox does not count",
            view(&pod).dead_sandbox().exited("b", 0).sandbox(),
            "start a",
        ),
    ]);
}

#[test]
fn an_init_container_that_fails_is_tried_again_by_policy_or_ends_the_pod() {
    let never = two().policy("Never").build();
    let own = |policy: &str| {
        let policy = Some(policy.to_owned());
        pod().init_with("a", |c| c.restart_policy = policy).regular("app")
    };
    let own_never = own("Never").build();
    let own_failure = own("OnFailure").policy("Never").build();
    let on_failure = two().policy("OnFailure").build();
    let oom = |c: &mut crate::view::ContainerView| {
        if let crate::view::ContainerState::Exited(exit) = &mut c.state {
            exit.reason = "OOMKilled".to_owned();
        }
    };
    let failed = |pod| view(pod).sandbox().exited("a", 1).build();
    let killed = |pod| view(pod).sandbox().exited("a", 0).edit_container(oom).build();
    let end_reason = "stop sandbox-0; over InitFailed(\"a\")";
    check([
        ("Never", never.clone(), failed(&never), end_reason),
        ("own Never", own_never.clone(), failed(&own_never), end_reason),
        ("own OnFailure", own_failure.clone(), failed(&own_failure), "start a#1"),
        ("OnFailure", on_failure.clone(), failed(&on_failure), "start a#1"),
        ("out of memory is a failure", on_failure.clone(), killed(&on_failure), "start a#1"),
        ("out of memory is a failure with Never too", never.clone(), killed(&never), end_reason),
        (
            "with Never one whose state is unknown counts as failed",
            never.clone(),
            view(&never).sandbox().unknown("a").build(),
            "stop a-0 (Pod); stop sandbox-0; over InitFailed(\"a\")",
        ),
    ]);
}

#[test]
fn init_containers_are_not_run_again_once_a_regular_one_was_made() {
    let pod = two().build();
    let row = |what, view: crate::fixture::ViewBuilder, expected| {
        (what, pod.clone(), view.build(), expected)
    };
    let start = || view(&pod).sandbox();
    check([
        row("it runs and the init containers are lost", start().running("app"), ""),
        row("it was made", start().created("app"), "remove app-0; start app#1"),
        row("it crashed", start().exited("app", 1), "start app#1"),
        row(
            "it runs, and an init container seems to have failed",
            start().exited("b", 1).running("app"),
            "",
        ),
    ]);
}

#[test]
fn the_next_container_starts_when_the_sidecar_before_it_has_started() {
    let plain = pod().sidecar("s").init("i").regular("app").build();
    let slow = pod().sidecar_with("s", |c| c.startup_probe = some_probe()).regular("app").build();
    let running = |pod| view(pod).sandbox().running("s").build();
    check([
        ("running is enough without a startup probe", plain.clone(), running(&plain), "start i"),
        ("with one it has to succeed first", slow.clone(), running(&slow), ""),
        (
            "one that ended is started before anything else",
            plain.clone(),
            view(&plain).sandbox().exited("s", 0).build(),
            "start s#1",
        ),
    ]);
    let fixture = |result| {
        ActionsFixture::of(slow.clone(), running(&slow)).probed("s-0", ProbeKind::Startup, result)
    };
    assert_eq!(fixture(ProbeResult::Unknown).describe_actions(), "");
    assert_eq!(fixture(ProbeResult::Success).describe_actions(), "start app");
    assert_eq!(
        fixture(ProbeResult::Failure).describe_actions(),
        "stop s-0 (Startup, again); start s#1"
    );
}

#[test]
fn sidecars_are_kept_running_whatever_else_happens() {
    let pod = pod().policy("Never").sidecar("s").init("i").sidecar("t").regular("app").build();
    let start = || view(&pod).sandbox();
    let row = |what, view: crate::fixture::ViewBuilder, expected| {
        (what, pod.clone(), view.build(), expected)
    };
    check([
        row("ended well while the next one runs", start().exited("s", 0).running("i"), "start s#1"),
        row(
            "ended badly while the pod runs",
            start().exited("s", 1).running("t").running("app"),
            "start s#1",
        ),
        row("lost while the pod runs", start().running("t").running("app"), "start s"),
        row(
            "both, in order",
            start().exited("t", 1).exited("s", 1).running("app"),
            "start s#1; start t#1",
        ),
        row(
            "made and not started",
            start().created("s").running("t").running("app"),
            "remove s-0; start s#1",
        ),
        row(
            "unknown",
            start().unknown("s").running("t").running("app"),
            "stop s-0 (Unknown, again); remove s-0; start s#1",
        ),
        row(
            "but not when nothing else is left",
            start().exited("s", 1).running("t").exited("app", 0),
            "stop t-0 (Pod); stop sandbox-0; over NothingToRun",
        ),
        row(
            "one restarts while the next begins",
            start().exited("s", 1).exited("i", 0),
            "start s#1; start t",
        ),
    ]);
}

#[test]
fn a_sidecar_is_restarted_for_its_probes_and_its_definition() {
    let pod = pod().policy("Never").sidecar("s").regular("app").build();
    let view = |hash: Option<u32>| {
        let view = view(&pod).sandbox().running("s");
        view.edit_container(|c| c.label.hash = hash.or(c.label.hash)).running("app").build()
    };
    let fixture = ActionsFixture::of(pod.clone(), view(None));
    let failed = |kind| fixture_with_probe(&fixture, kind).describe_actions();
    assert_eq!(failed(ProbeKind::Liveness), "stop s-0 (Liveness, again); start s#1");
    assert_eq!(failed(ProbeKind::Startup), "stop s-0 (Startup, again); start s#1");
    assert_eq!(failed(ProbeKind::Readiness), "");
    let changed = ActionsFixture::of(pod.clone(), view(Some(1)));
    assert_eq!(changed.describe_actions(), "stop s-0 (DefinitionChanged, again); start s#1");
    let said = changed.actions().stop[0].event();
    assert_eq!(said.message, "Init container s definition changed, will be restarted");
    assert_eq!(said.field_path.as_deref(), Some("spec.initContainers{s}"));
}

fn fixture_with_probe(fixture: &ActionsFixture, kind: ProbeKind) -> ActionsFixture {
    let fresh = ActionsFixture::of(fixture.pod.clone(), fixture.view.clone());
    fresh.probed("s-0", kind, ProbeResult::Failure)
}

#[test]
fn an_init_container_that_runs_is_left_alone_even_if_its_definition_changed() {
    let pod = two().build();
    let view = view(&pod).sandbox().running("a").edit_container(|c| c.label.hash = Some(1));
    check([("it is on its way to its end", pod, view.build(), "")]);
}
