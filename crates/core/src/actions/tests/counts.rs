//! Restart counts.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus,
};

use super::*;
use crate::fixture::pod;

fn waiting() -> ContainerState {
    ContainerState { waiting: Some(ContainerStateWaiting::default()), ..Default::default() }
}

fn running() -> ContainerState {
    ContainerState { running: Some(ContainerStateRunning::default()), ..Default::default() }
}

fn terminated(reason: &str) -> ContainerState {
    let reason = Some(reason.to_owned());
    let terminated = ContainerStateTerminated { reason, ..Default::default() };
    ContainerState { terminated: Some(terminated), ..Default::default() }
}

#[test]
fn the_count_of_a_lost_container_comes_from_the_published_status() {
    let error = || Some(terminated("Error"));
    let lost = || Some(terminated("ContainerStatusUnknown"));
    // state, last state, published count, the plan
    let rows = [
        (waiting(), None, 0, "start app"),
        (running(), None, 0, "start app#1"),
        (running(), error(), 4, "start app#5"),
        (terminated("Error"), None, 2, "start app#3"),
        (waiting(), error(), 4, "start app#5"),
        (waiting(), lost(), 4, "start app#4"),
    ];
    for (state, last_state, restart_count, expected) in rows {
        let status = ContainerStatus {
            name: "app".to_owned(),
            state: Some(state.clone()),
            last_state: last_state.clone(),
            restart_count,
            ..Default::default()
        };
        let container_statuses = Some(vec![status]);
        let pod = pod().regular("app").build();
        let mut fixture = ActionsFixture::of(pod.clone(), view(&pod).sandbox().build());
        fixture.published = Some(PodStatus { container_statuses, ..Default::default() });
        assert_eq!(
            fixture.describe_actions(),
            expected,
            "{state:?} {last_state:?} {restart_count}"
        );
    }
}

#[test]
fn the_count_is_one_above_the_highest_that_runtime_or_status_know() {
    let pod = pod().regular("app").build();
    let view = view(&pod).sandbox().exited("app", 1).edit_container(|c| c.label.restart_count = 7);
    let mut fixture = ActionsFixture::of(pod, view.build());
    assert_eq!(fixture.describe_actions(), "start app#8");
    let status = |restart_count| ContainerStatus {
        name: "app".to_owned(),
        state: Some(running()),
        restart_count,
        ..Default::default()
    };
    for (published, expected) in [(3, "start app#8"), (7, "start app#8"), (9, "start app#10")] {
        let container_statuses = Some(vec![status(published)]);
        fixture.published = Some(PodStatus { container_statuses, ..Default::default() });
        assert_eq!(fixture.describe_actions(), expected, "published {published}");
    }
}

#[test]
fn without_runtime_and_status_the_restart_count_comes_from_log_files() {
    let rows: [(&[&str], u32); 6] = [
        (&[], 0),
        (&["0.log"], 1),
        (&["0.log", "3.log", "2.log"], 4),
        (&["4.log.20260101-000000", "4.log.20260101-000000.gz"], 5),
        (&["x.log", ".log", "7.txt", "8.logs", "+9.log"], 0),
        (&["99999999999999999999.log"], 0),
    ];
    for (files, expected) in rows {
        assert_eq!(count_from_logs(files.iter().copied()), expected, "{files:?}");
    }
}
