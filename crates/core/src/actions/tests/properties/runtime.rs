//! The smallest runtime that can carry out a plan, one step at a time.

use super::super::*;
use crate::fixture::at;
use crate::hash::container_hash;
use crate::ids::{ContainerId, SandboxId};
use crate::pod::{ContainerKind, PodExt};
use crate::view::{ContainerLabel, ContainerState, ContainerView, Exit, SandboxView};

/// One call to the runtime.
#[derive(Clone, Debug)]
pub(super) enum RuntimeCall {
    ContainerToKill(ContainerId),
    StopSandbox(SandboxId),
    Remove(ContainerId),
    CreateSandbox(u32),
    CreateContainer(ContainerToStart),
    StartContainer(ContainerToStart),
}

/// The calls that carry the plan out, in order.
pub(super) fn steps(actions: &PodActions) -> Vec<RuntimeCall> {
    let stops = actions.stop.iter().map(|stop| RuntimeCall::ContainerToKill(stop.id.clone()));
    let sandboxes = actions.stop_sandboxes.iter().cloned().map(RuntimeCall::StopSandbox);
    let removals = actions.remove.iter().map(|removal| RuntimeCall::Remove(removal.id.clone()));
    let create = match &actions.sandbox {
        SandboxAction::Create(new) => Some(RuntimeCall::CreateSandbox(new.attempt)),
        SandboxAction::Keep(_) | SandboxAction::None => None,
    };
    let starts = actions.start.iter().cloned();
    let starts = starts
        .flat_map(|s| [RuntimeCall::CreateContainer(s.clone()), RuntimeCall::StartContainer(s)]);
    stops.chain(sandboxes).chain(removals).chain(create).chain(starts).collect()
}

/// Carries steps of the plan out, after which a second passes.
pub(super) fn carry_out(fixture: &mut ActionsFixture, actions: &PodActions, steps: &[RuntimeCall]) {
    actions.record(&mut fixture.backoff, fixture.now);
    for step in steps {
        take(fixture, step);
    }
    fixture.now.wall += jiff::SignedDuration::from_secs(1);
    fixture.now.mono = fixture.now.mono + std::time::Duration::from_secs(1);
}

fn take(fixture: &mut ActionsFixture, step: &RuntimeCall) {
    let now = fixture.now.wall;
    let view = &mut fixture.view;
    match step {
        RuntimeCall::ContainerToKill(id) => set_state(view, id, &exited(now, 137)),
        RuntimeCall::StopSandbox(id) => {
            view.sandboxes.iter_mut().filter(|s| s.id == *id).for_each(|s| s.ready = false);
            let inside = view.containers.iter().filter(|c| c.sandbox == *id && c.state.may_run());
            assert_eq!(inside.count(), 0, "containers are stopped before their sandbox");
        }
        RuntimeCall::Remove(id) => view.containers.retain(|c| c.id != *id),
        RuntimeCall::CreateSandbox(attempt) => create_sandbox(fixture, *attempt),
        RuntimeCall::CreateContainer(start) => create_container(fixture, start),
        RuntimeCall::StartContainer(start) => start_container(fixture, start),
    }
    fixture.view = fixture.view.clone().in_order();
}

fn create_sandbox(fixture: &mut ActionsFixture, attempt: u32) {
    assert!(fixture.view.nothing_runs(), "all is stopped before another sandbox is made");
    let host_network = fixture.pod.host_network();
    fixture.view.sandboxes.push(SandboxView {
        id: format!("sandbox-{attempt}").into(),
        attempt,
        ready: true,
        created_at: fixture.now.wall,
        host_network,
        network_reported: true,
        ips: if host_network { Vec::new() } else { vec!["10.0.0.1".to_owned()] },
        annotations: Default::default(),
    });
}

fn create_container(fixture: &mut ActionsFixture, start: &ContainerToStart) {
    let wanted = fixture.pod.container(&start.name).unwrap();
    let restart_count = match start.restart_count {
        RestartCount::Known(count) => count,
        RestartCount::FromLogs => 0,
    };
    let label = ContainerLabel {
        hash: Some(container_hash(&wanted.spec)),
        restart_count,
        ..Default::default()
    };
    let container = ContainerView {
        id: format!("new-{}-{restart_count}", start.name).into(),
        sandbox: fixture.view.newest_sandbox().unwrap().id.clone(),
        name: start.name.clone(),
        image: String::new(),
        image_ref: String::new(),
        created_at: fixture.now.wall,
        state: ContainerState::Created,
        label,
        message_file: None,
        user: None,
        stop_signal: None,
    };
    fixture.view.containers.insert(0, container);
}

/// Init containers do their work at once, and sidecars come up at once.
fn start_container(fixture: &mut ActionsFixture, start: &ContainerToStart) {
    let running = fixture.view.possibly_running().filter(|c| c.name == start.name).count();
    assert_eq!(running, 0, "{} runs already", start.name);
    let id = fixture.view.newest(&start.name).unwrap().id.clone();
    let state = match start.kind {
        ContainerKind::Init => exited(fixture.now.wall, 0),
        _ => ContainerState::Running { started_at: fixture.now.wall },
    };
    set_state(&mut fixture.view, &id, &state);
    fixture.probes.set(id, ProbeKind::Startup, ProbeResult::Success);
}

fn set_state(view: &mut PodView, id: &ContainerId, state: &ContainerState) {
    view.containers.iter_mut().filter(|c| c.id == *id).for_each(|c| c.state = state.clone());
}

fn exited(finished_at: jiff::Timestamp, code: i32) -> ContainerState {
    let reason = if code == 0 { "Completed" } else { "Error" }.to_owned();
    let exit = Exit { started_at: Some(at(0)), finished_at, code, reason, message: String::new() };
    ContainerState::Exited(exit)
}
