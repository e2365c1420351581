//! Regular containers: started, watched, restarted.

use super::*;
use crate::fixture::{PodBuilder, ViewBuilder, pod};

fn app() -> PodBuilder {
    pod().regular("app")
}

#[test]
fn a_regular_container_is_started_and_restarted_by_its_state() {
    let pod = app().build();
    let row = |what, view: ViewBuilder, expected| (what, pod.clone(), view.build(), expected);
    let start = || view(&pod).sandbox();
    check([
        row("not there", start(), "start app"),
        row("running", start().running("app"), ""),
        row("ended", start().exited("app", 0), "start app#1"),
        row("made and not started", start().created("app"), "remove app-0; start app#1"),
        row(
            "unknown",
            start().unknown("app"),
            "stop app-0 (Unknown, again); remove app-0; start app#1",
        ),
        row(
            "ended in the sandbox before",
            view(&pod).dead_sandbox().exited("app", 1).sandbox(),
            "start app#1",
        ),
    ]);
}

#[test]
fn all_regular_containers_start_in_spec_order() {
    let pod = pod().regular("c").regular("a").regular("b").build();
    let view = view(&pod).sandbox().running("a").build();
    check([("spec order", pod, view, "start c; start b")]);
}

#[test]
fn a_container_that_is_not_restarted_rests_and_the_last_one_ends_the_pod() {
    let never = app().regular("log").policy("Never").build();
    let on_failure = app().regular("log").policy("OnFailure").build();
    let start = |pod| view(pod).sandbox();
    let end_reason = "stop sandbox-0; over NothingToRun";
    check([
        ("one runs on", never.clone(), start(&never).exited("app", 1).running("log").build(), ""),
        ("one was never made", never.clone(), start(&never).exited("app", 1).build(), "start log"),
        (
            "all have ended",
            never.clone(),
            start(&never).exited("app", 1).exited("log", 0).build(),
            end_reason,
        ),
        (
            "all have ended well",
            on_failure.clone(),
            start(&on_failure).exited("app", 0).exited("log", 0).build(),
            end_reason,
        ),
        (
            "one ended badly",
            on_failure.clone(),
            start(&on_failure).exited("app", 0).exited("log", 2).build(),
            "start log#1",
        ),
        (
            "unknown is started again even with Never",
            never.clone(),
            start(&never).unknown("app").running("log").build(),
            "stop app-0 (Unknown, again); remove app-0; start app#1",
        ),
        (
            "made and not started too",
            never.clone(),
            start(&never).created("app").running("log").build(),
            "remove app-0; start app#1",
        ),
    ]);
}

#[test]
fn a_running_container_is_stopped_for_these_reasons() {
    use ProbeKind::{Liveness, Readiness, Startup};
    let restarts = "stop app-0 (Liveness, again); start app#1";
    let rests = "stop app-0 (Liveness)";
    let own = |policy: &str| Some(policy.to_owned());
    // pod policy, container policy, failed probe, the plan
    let rows = [
        ("Always", None, Liveness, restarts),
        ("OnFailure", None, Liveness, restarts),
        ("Never", None, Liveness, rests),
        ("Never", own("OnFailure"), Liveness, restarts),
        ("Always", own("Never"), Liveness, rests),
        ("Always", None, Startup, "stop app-0 (Startup, again); start app#1"),
        ("Never", None, Startup, "stop app-0 (Startup)"),
        ("Always", None, Readiness, ""),
    ];
    for (of_pod, of_container, probe, expected) in rows {
        let pod = pod().policy(of_pod).regular("log");
        let pod = pod.regular_with("app", |c| c.restart_policy = of_container.clone()).build();
        let view = view(&pod).sandbox().running("log").running("app").build();
        let fixture = ActionsFixture::of(pod, view).probed("app-0", probe, ProbeResult::Failure);
        assert_eq!(fixture.describe_actions(), expected, "{of_pod} {of_container:?} {probe:?}");
    }
}

#[test]
fn an_edited_image_restarts_only_that_container_whatever_the_policy() {
    let before = app().regular("log").build();
    let view = view(&before).sandbox().running("app").running("log").build();
    let edited = pod().policy("Never").regular_with("app", |c| c.image = Some("app:2".into()));
    let fixture = ActionsFixture::of(edited.regular("log").build(), view);
    assert_eq!(fixture.describe_actions(), "stop app-0 (DefinitionChanged, again); start app#1");
}

#[test]
fn the_last_container_stopped_for_good_takes_the_pod_with_it() {
    let pod = app().policy("Never").sidecar("s").build();
    let view = view(&pod).sandbox().running("s").running("app").build();
    let fixture =
        ActionsFixture::of(pod, view).probed("app-0", ProbeKind::Liveness, ProbeResult::Failure);
    let expected = "stop app-0 (Pod); stop s-0 (Pod); stop sandbox-0; over NothingToRun";
    assert_eq!(fixture.describe_actions(), expected);
}

#[test]
fn kill_events_have_the_reason_and_whether_the_container_restarts() {
    let stop = |why, restarts| {
        let pod = app().build();
        let view = view(&pod).sandbox().running("app").build();
        let stop = ContainerToKill::of(Some(&pod), &view.containers[0], why).restarting(restarts);
        stop.event()
    };
    let rows = [
        (ContainerKillReason::Pod, false, "Stopping container app"),
        (
            ContainerKillReason::DefinitionChanged,
            true,
            "Container app definition changed, will be restarted",
        ),
        (
            ContainerKillReason::Liveness,
            true,
            "Container app failed liveness probe, will be restarted",
        ),
        (ContainerKillReason::Liveness, false, "Container app failed liveness probe"),
        (
            ContainerKillReason::Startup,
            true,
            "Container app failed startup probe, will be restarted",
        ),
        (ContainerKillReason::PostStart, false, "FailedPostStartHook"),
    ];
    for (why, restarts, message) in rows {
        let event = stop(why, restarts);
        assert_eq!((&*event.reason, event.message.as_str()), ("Killing", message));
        assert_eq!(event.field_path.as_deref(), Some("spec.containers{app}"));
    }
}

#[test]
fn a_probe_that_failed_sets_its_own_grace_period() {
    let pod = pod().regular_with("app", |c| {
        c.liveness_probe = some_probe();
        c.liveness_probe.as_mut().unwrap().termination_grace_period_seconds = Some(5);
    });
    let pod = pod.build();
    let view = view(&pod).sandbox().running("app").build();
    let fixture =
        ActionsFixture::of(pod, view).probed("app-0", ProbeKind::Liveness, ProbeResult::Failure);
    assert_eq!(
        fixture.actions().stop[0].grace,
        crate::grace::ContainerGracePeriod::from_seconds(5)
    );
}

#[test]
fn a_deleting_pod_starts_nothing_and_is_stopped() {
    let pod = app().init("i").ephemeral("debug").deleting(7).build();
    let row = |what, view: ViewBuilder, expected| (what, pod.clone(), view.build(), expected);
    let start = || view(&pod).sandbox();
    check([
        row("nothing there yet", view(&pod), "over Deleting"),
        row("nothing runs", view(&pod).dead_sandbox().exited("app", 1), "over Deleting"),
        row("running", start().running("app"), "stop app-0 (Pod); stop sandbox-0; over Deleting"),
        row("only the sandbox is left", start().exited("app", 1), "stop sandbox-0; over Deleting"),
    ]);
    let actions = ActionsFixture::of(pod.clone(), start().running("app").build()).actions();
    assert_eq!(actions.stop[0].grace, crate::grace::ContainerGracePeriod::from_seconds(7));
    assert_eq!(actions.sandbox, SandboxAction::None);
}
