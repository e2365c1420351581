//! Ephemeral containers.

use super::*;
use crate::fixture::{ViewBuilder, pod};

#[test]
fn an_ephemeral_container_is_started_once_and_before_all_others() {
    let pod = pod().init("i").regular("app").ephemeral("debug").build();
    let row = |what, view: ViewBuilder, expected| (what, pod.clone(), view.build(), expected);
    let start = || view(&pod).sandbox();
    check([
        row("beside a running pod", start().running("app"), "start debug"),
        row("before the init container", start(), "start debug; start i"),
        row("while an init container hangs", start().running("i"), "start debug"),
        row("not twice", start().running("app").running("debug"), ""),
        row("not again when it ended", start().running("app").exited("debug", 1), ""),
        row(
            "not again in a new sandbox",
            view(&pod).dead_sandbox().exited("debug", 0).sandbox().running("app"),
            "",
        ),
        row(
            "one that was never started is made anew",
            start().running("app").created("debug"),
            "remove debug-0; start debug#1",
        ),
    ]);
}

#[test]
fn an_ephemeral_container_does_not_keep_a_pod_alive() {
    let pod = pod().policy("Never").regular("app").ephemeral("debug").build();
    let view = view(&pod).sandbox().exited("app", 0).running("debug").build();
    let expected = "stop debug-0 (Pod); stop sandbox-0; over NothingToRun";
    check([("the regular one has ended", pod, view, expected)]);
}
