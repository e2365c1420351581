//! Crash-loop back-off, as it shows in plans.

use std::time::Duration;

use super::*;
use crate::backoff::{Crash, container_key};
use crate::fixture::{at, pod};
use crate::pod::PodExt;
use crate::time::Mono;

/// A back-off that has let so many restarts of `app` through, the last of them at second 990.
pub(super) fn after_restarts(pod: &Pod, restarts: u32) -> CrashBackoff {
    let key = container_key(pod, &pod.container("app").unwrap().spec);
    let mut backoff = CrashBackoff::default();
    for n in 0..restarts {
        let container = format!("earlier-{n}").into();
        backoff.advance(&Crash { key: key.clone(), container, at: at(990) }, now(990));
    }
    backoff
}

fn crashed(restarts: u32) -> ActionsFixture {
    let pod = pod().regular("app").build();
    let view = view(&pod).sandbox().exited_at("app", 1, 995).build();
    let mut fixture = ActionsFixture::of(pod, view);
    fixture.backoff = after_restarts(&fixture.pod, restarts);
    fixture
}

#[test]
fn a_container_in_back_off_waits_with_one_event() {
    let mut fixture = crashed(5);
    let actions = fixture.actions();
    assert_eq!(describe(&actions), "wait app 160s");
    assert_eq!(actions.next_sync_at(), Some(Mono(Duration::from_secs(995 + 160))));
    let message = "back-off 2m40s restarting failed container=app pod=web_default(uid-web)";
    assert_eq!(actions.wait[0].message, message);
    let event = &actions.events[0];
    let said = "Back-off restarting failed container app in pod web_default(uid-web)";
    assert_eq!((&*event.reason, event.message.as_str()), ("BackOff", said));
    assert_eq!(event.kind, crate::event::EventKind::Warning);
    assert_eq!(event.field_path.as_deref(), Some("spec.containers{app}"));
    actions.record(&mut fixture.backoff, fixture.now);
    fixture.now = now(1001);
    assert_eq!(fixture.actions().events, [], "the event is not repeated");
    fixture.now = now(995 + 160);
    assert_eq!(fixture.describe_actions(), "start app#1");
}

#[test]
fn the_first_restart_is_immediate_and_the_next_is_not() {
    let mut fixture = crashed(0);
    let actions = fixture.actions();
    assert_eq!(describe(&actions), "start app#1");
    actions.record(&mut fixture.backoff, fixture.now);
    assert_eq!(fixture.describe_actions(), "start app#1", "the same start, tried again");
    let view = view(&fixture.pod).sandbox().exited("app", 1).exited_at("app", 1, 1000);
    fixture.view = view.build();
    assert_eq!(fixture.describe_actions(), "remove app-0; wait app 10s");
}

#[test]
fn a_container_whose_probe_failed_is_stopped_at_once_and_restarted_when_it_may() {
    let pod = pod().regular("app").build();
    let running = view(&pod).sandbox().running("app").build();
    let mut fixture =
        ActionsFixture::of(pod, running).probed("app-0", ProbeKind::Liveness, ProbeResult::Failure);
    let actions = fixture.actions();
    assert_eq!(describe(&actions), "stop app-0 (Liveness, again); start app#1");
    assert_eq!(actions.crashes.len(), 1, "to fail a probe is to crash");
    fixture.backoff = after_restarts(&fixture.pod, 1);
    assert_eq!(fixture.describe_actions(), "stop app-0 (Liveness, again)");
    assert_eq!(fixture.actions().end_reason, None, "it comes back");
}

#[test]
fn an_edit_is_not_a_crash() {
    let pod = pod().regular("app").build();
    let view = view(&pod).sandbox().running("app").edit_container(|c| c.label.hash = Some(1));
    let mut fixture = ActionsFixture::of(pod, view.build());
    fixture.backoff = after_restarts(&fixture.pod, 3);
    let actions = fixture.actions();
    assert_eq!(describe(&actions), "stop app-0 (DefinitionChanged, again); start app#1");
    assert_eq!(actions.crashes, []);
}

#[test]
fn an_init_container_in_back_off_holds_up_the_pod_and_a_sidecar_does_not() {
    let with_init = pod().init("app").regular("web").build();
    let view_of = |pod: &Pod| view(pod).sandbox().exited_at("app", 1, 995);
    let mut fixture = ActionsFixture::of(with_init.clone(), view_of(&with_init).build());
    fixture.backoff = after_restarts(&fixture.pod, 1);
    assert_eq!(fixture.describe_actions(), "wait app 10s");
    let with_sidecar = pod().sidecar("app").regular("web").build();
    let mut fixture =
        ActionsFixture::of(with_sidecar.clone(), view_of(&with_sidecar).exited("web", 1).build());
    fixture.backoff = after_restarts(&fixture.pod, 1);
    assert_eq!(fixture.describe_actions(), "start web#1; wait app 10s");
}

#[test]
fn a_container_left_half_made_waits_like_the_one_before_it() {
    let mut fixture = crashed(1);
    let view = view(&fixture.pod).sandbox().exited_at("app", 1, 995).created("app");
    fixture.view = view.build();
    assert_eq!(fixture.describe_actions(), "wait app 10s");
}
