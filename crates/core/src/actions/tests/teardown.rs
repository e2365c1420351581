//! Stopping all of a pod.

use k8s_openapi::api::core::v1::{Container, Lifecycle, LifecycleHandler, SleepAction};

use super::*;
use crate::fixture::pod;
use crate::grace::ContainerGracePeriod;
use crate::ids::ContainerId;

fn sleep(seconds: i64) -> LifecycleHandler {
    LifecycleHandler { sleep: Some(SleepAction { seconds }), ..LifecycleHandler::default() }
}

fn hooked(container: &mut Container) {
    let pre_stop = Some(sleep(3));
    container.lifecycle = Some(Lifecycle { pre_stop, ..Lifecycle::default() });
}

/// Which container waits for which.
fn order(teardown: &Teardown) -> Vec<(&str, Vec<&str>)> {
    let stops = teardown.stop.iter();
    stops.map(|s| (s.id.as_str(), s.after.iter().map(ContainerId::as_str).collect())).collect()
}

#[test]
fn sidecars_end_after_the_regular_containers_in_reverse_order() {
    let pod = pod().sidecar("s").init("i").sidecar("t").regular("app").regular("log").build();
    let all = view(&pod).sandbox().running("s").exited("i", 0).running("t");
    let view = all.running("app").running("log").build();
    let teardown = teardown(Some(&pod), &view, None);
    let mut order = order(&teardown);
    order.sort_unstable();
    assert_eq!(
        order,
        [
            ("app-0", vec![]),
            ("log-0", vec![]),
            ("s-0", vec!["log-0", "app-0", "t-0"]),
            ("t-0", vec!["log-0", "app-0"]),
        ]
    );
}

#[test]
fn stops_wait_neither_for_stopped_nor_for_ephemeral_containers() {
    let pod = pod().sidecar("s").sidecar("t").regular("app").ephemeral("debug").build();
    let view = view(&pod).sandbox().running("s").exited("t", 1).exited("app", 0).running("debug");
    let teardown = teardown(Some(&pod), &view.build(), None);
    assert_eq!(order(&teardown), [("debug-0", vec![]), ("s-0", vec![])]);
}

#[test]
fn every_sandbox_is_stopped_and_containers_outside_the_spec_too() {
    let pod = pod().regular("app").build();
    let view = view(&pod).dead_sandbox().exited("app", 1).sandbox().unknown("app").created("app");
    let teardown = teardown(Some(&pod), &view.build(), None);
    assert_eq!(order(&teardown), [("app-1", vec![])]);
    assert_eq!(teardown.sandboxes, ["sandbox-1".into(), "sandbox-0".into()]);
}

#[test]
fn grace_and_hook_come_from_the_spec_and_an_override_goes_before() {
    let rows = [
        (20, None, 20, Some(sleep(3))),
        (20, Some(5), 5, Some(sleep(3))),
        (20, Some(0), 0, None),
        (0, None, 0, None),
        (0, Some(1), 1, Some(sleep(3))),
    ];
    for (spec, asked, seconds, hook) in rows {
        let pod = pod().grace(spec).regular_with("app", hooked).build();
        let view = view(&pod).sandbox().running("app").build();
        let teardown = teardown(Some(&pod), &view, asked);
        let stop = &teardown.stop[0];
        assert_eq!(stop.grace, ContainerGracePeriod::from_seconds(seconds), "override {asked:?}");
        assert_eq!(stop.pre_stop, hook, "override {asked:?}");
    }
}

#[test]
fn grace_and_hook_of_an_orphan_come_from_its_annotations() {
    let known = pod().regular("app").build();
    let view = view(&known).sandbox().running("app").edit_container(|c| {
        c.label.termination_grace = Some(9);
        c.label.pre_stop = Some(sleep(1));
    });
    let teardown = teardown(None, &view.build(), None);
    let stop = &teardown.stop[0];
    assert_eq!((stop.kind, stop.grace), (None, ContainerGracePeriod::from_seconds(9)));
    assert_eq!(stop.pre_stop, Some(sleep(1)));
    assert_eq!(stop.event().field_path, None);
    assert_eq!(teardown.sandboxes, ["sandbox-0".into()]);
}
