//! Containers that are in the way.

use super::*;
use crate::fixture::{ViewBuilder, pod};

fn foreign(view: ViewBuilder) -> ViewBuilder {
    view.edit_container(|c| c.label.hash = None)
}

#[test]
fn what_runs_and_is_not_the_one_that_counts_is_stopped() {
    let pod = pod().sidecar("s").regular("app").build();
    let row = |what, view: ViewBuilder, expected| (what, pod.clone(), view.build(), expected);
    let good = |view: ViewBuilder| view.running("s").running("app");
    check([
        row(
            "the older of two of one name",
            good(view(&pod).sandbox().running("app")),
            "stop app-0 (Stray)",
        ),
        row("not in the spec", good(view(&pod).sandbox()).running("old"), "stop old-0 (Stray)"),
        row("not ours", foreign(good(view(&pod).sandbox()).running("guest")), ""),
        row(
            "in a sandbox before, beside its successor",
            good(view(&pod).dead_sandbox().running("app").sandbox()),
            "stop app-0 (Stray)",
        ),
        row(
            "in a sandbox before, without a successor",
            view(&pod).dead_sandbox().running("app").sandbox().running("s"),
            "stop app-0 (Stray, again); start app#1",
        ),
        row(
            "a sidecar in a sandbox before",
            view(&pod).dead_sandbox().running("s").sandbox(),
            "stop s-0 (Stray, again); start s#1",
        ),
    ]);
}

#[test]
fn only_the_newest_dead_container_of_a_name_is_kept() {
    let pod = pod().init("i").regular("app").build();
    let row = |what, view: ViewBuilder, expected| (what, pod.clone(), view.build(), expected);
    let start = || view(&pod).sandbox();
    check([
        row("one beside a running one", start().exited("app", 1).running("app"), ""),
        row(
            "two beside a running one",
            start().exited("app", 1).exited("app", 1).running("app"),
            "remove app-0",
        ),
        row(
            "also of init containers",
            start().exited("i", 1).exited("i", 1).exited("i", 0).running("app"),
            "remove i-1; remove i-0",
        ),
        row(
            "not what is not ours",
            foreign(foreign(start().exited("x", 1)).exited("x", 1)).running("app"),
            "",
        ),
    ]);
}

#[test]
fn as_many_dead_of_a_name_are_kept_as_the_node_says_and_one_always() {
    let pod = pod().regular("app").build();
    let dead = view(&pod).sandbox().exited("app", 1).exited("app", 1).exited("app", 1);
    let mut fixture = ActionsFixture::of(pod, dead.running("app").build());
    for (dead_kept, want) in
        [(0, "remove app-1; remove app-0"), (1, "remove app-1; remove app-0"), (2, "remove app-0")]
    {
        fixture.dead_kept = dead_kept;
        assert_eq!(fixture.describe_actions(), want, "{dead_kept}");
    }
    fixture.dead_kept = usize::MAX;
    assert_eq!(fixture.describe_actions(), "");
}

#[test]
fn one_that_is_stopped_now_counts_as_the_newest_dead() {
    let pod = pod().regular("app").build();
    let view = view(&pod).sandbox().exited("app", 1).running("app").build();
    let fixture =
        ActionsFixture::of(pod, view).probed("app-1", ProbeKind::Liveness, ProbeResult::Failure);
    assert_eq!(
        fixture.describe_actions(),
        "stop app-1 (Liveness, again); remove app-0; start app#2"
    );
}

#[test]
fn a_pod_that_has_ended_keeps_the_newest_of_each_name_and_an_evicted_one_nothing() {
    let pod = pod().regular("app").regular("log").build();
    let view = view(&pod).dead_sandbox().exited("app", 1).exited("app", 1).exited("log", 0).build();
    let ids = |evicted| -> Vec<String> {
        let removals = dead_containers(&view, evicted);
        removals.iter().map(|removal| removal.id.to_string()).collect()
    };
    assert_eq!(ids(false), ["app-0"]);
    assert_eq!(ids(true), ["app-1", "log-0", "app-0"]);
}
