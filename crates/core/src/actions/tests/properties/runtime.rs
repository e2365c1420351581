//! The smallest runtime that can carry out a plan, one step at a time.

use super::super::*;
use crate::fixture::at;
use crate::hash::container_hash;
use crate::ids::{ContainerId, SandboxId};
use crate::pod::{ContainerKind, PodExt};
use crate::view::{ContainerLabel, ContainerState, ContainerView, Exit, SandboxView};

/// One call to the runtime.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Stop(ContainerId),
    StopSandbox(SandboxId),
    Remove(ContainerId),
    CreateSandbox(u32),
    CreateContainer(Start),
    StartContainer(Start),
}

/// The calls that carry the plan out, in order.
pub(super) fn steps(plan: &Plan) -> Vec<Step> {
    let stops = plan.stop.iter().map(|stop| Step::Stop(stop.id.clone()));
    let sandboxes = plan.stop_sandboxes.iter().cloned().map(Step::StopSandbox);
    let removals = plan.remove.iter().map(|removal| Step::Remove(removal.id.clone()));
    let create = match &plan.sandbox {
        SandboxStep::Create(new) => Some(Step::CreateSandbox(new.attempt)),
        SandboxStep::Keep(_) | SandboxStep::None => None,
    };
    let starts = plan.start.iter().cloned();
    let starts = starts.flat_map(|s| [Step::CreateContainer(s.clone()), Step::StartContainer(s)]);
    stops.chain(sandboxes).chain(removals).chain(create).chain(starts).collect()
}

/// Carries steps of the plan out, after which a second passes.
pub(super) fn carry_out(scene: &mut Scene, plan: &Plan, steps: &[Step]) {
    plan.record(&mut scene.backoff, scene.now);
    for step in steps {
        take(scene, step);
    }
    scene.now.wall += jiff::SignedDuration::from_secs(1);
    scene.now.mono = scene.now.mono + std::time::Duration::from_secs(1);
}

fn take(scene: &mut Scene, step: &Step) {
    let now = scene.now.wall;
    let view = &mut scene.view;
    match step {
        Step::Stop(id) => set_state(view, id, &exited(now, 137)),
        Step::StopSandbox(id) => {
            view.sandboxes.iter_mut().filter(|s| s.id == *id).for_each(|s| s.ready = false);
            let inside = view.containers.iter().filter(|c| c.sandbox == *id && c.state.may_run());
            assert_eq!(inside.count(), 0, "containers are stopped before their sandbox");
        }
        Step::Remove(id) => view.containers.retain(|c| c.id != *id),
        Step::CreateSandbox(attempt) => create_sandbox(scene, *attempt),
        Step::CreateContainer(start) => create_container(scene, start),
        Step::StartContainer(start) => start_container(scene, start),
    }
    scene.view = scene.view.clone().in_order();
}

fn create_sandbox(scene: &mut Scene, attempt: u32) {
    assert!(scene.view.is_quiet(), "all is stopped before another sandbox is made");
    let host_network = scene.pod.host_network();
    scene.view.sandboxes.push(SandboxView {
        id: format!("sandbox-{attempt}").into(),
        attempt,
        ready: true,
        created_at: scene.now.wall,
        host_network,
        ips: if host_network { Vec::new() } else { vec!["10.0.0.1".to_owned()] },
        annotations: Default::default(),
    });
}

fn create_container(scene: &mut Scene, start: &Start) {
    let wanted = scene.pod.container(&start.name).unwrap();
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
        sandbox: scene.view.newest_sandbox().unwrap().id.clone(),
        name: start.name.clone(),
        image: String::new(),
        image_ref: String::new(),
        created_at: scene.now.wall,
        state: ContainerState::Created,
        label,
        message_file: None,
        user: None,
    };
    scene.view.containers.insert(0, container);
}

/// Init containers do their work at once, and sidecars come up at once.
fn start_container(scene: &mut Scene, start: &Start) {
    let running = scene.view.possibly_running().filter(|c| c.name == start.name).count();
    assert_eq!(running, 0, "{} runs already", start.name);
    let id = scene.view.newest(&start.name).unwrap().id.clone();
    let state = match start.kind {
        ContainerKind::Init => exited(scene.now.wall, 0),
        _ => ContainerState::Running { started_at: scene.now.wall },
    };
    set_state(&mut scene.view, &id, &state);
    scene.probes.set(id, ProbeKind::Startup, ProbeResult::Success);
}

fn set_state(view: &mut PodView, id: &ContainerId, state: &ContainerState) {
    view.containers.iter_mut().filter(|c| c.id == *id).for_each(|c| c.state = state.clone());
}

fn exited(finished_at: jiff::Timestamp, code: i32) -> ContainerState {
    let reason = if code == 0 { "Completed" } else { "Error" }.to_owned();
    let exit = Exit { started_at: Some(at(0)), finished_at, code, reason, message: String::new() };
    ContainerState::Exited(exit)
}
