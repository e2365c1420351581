//! Stopping all of a pod: regular containers at once, then sidecars in reverse order, then the sandboxes.

use k8s_openapi::api::core::v1::Pod;

use super::pod_actions::{ContainerKillReason, ContainerToKill};
use crate::grace::ContainerGracePeriod;
use crate::ids::{ContainerId, SandboxId};
use crate::pod::{ContainerKind, PodExt};
use crate::view::PodView;

/// How to stop all of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Teardown {
    /// Containers to stop. All their hooks run at once; a sidecar then waits for those it comes after.
    pub stop: Vec<ContainerToKill>,
    /// Sandboxes to stop when every container has ended. One that is not ready is among them: its network may still
    /// have to be given back.
    pub sandboxes: Vec<SandboxId>,
}

/// How to stop all of a pod. Without a spec the containers themselves say what they need; `grace` in seconds, when
/// given, goes before what spec or container say.
pub fn teardown(pod: Option<&Pod>, view: &PodView, grace: Option<i64>) -> Teardown {
    let asked = grace.map(ContainerGracePeriod::from_seconds);
    let running = view.possibly_running();
    let stops = running
        .map(|c| ContainerToKill::with_requested_grace(pod, c, ContainerKillReason::Pod, asked));
    let mut stop: Vec<ContainerToKill> = stops.collect();
    let turns: Vec<(ContainerId, KillOrder)> =
        stop.iter().map(|stop| (stop.id.clone(), KillOrder::of(pod, stop))).collect();
    for stop in &mut stop {
        let turn = KillOrder::of(pod, stop);
        let before = turns.iter().filter(|(_, other)| other.ends_before(turn));
        stop.after = before.map(|(id, _)| id.clone()).collect();
    }
    let sandboxes = view.sandboxes.iter().map(|sandbox| sandbox.id.clone()).collect();
    Teardown { stop, sandboxes }
}

/// When a container's turn to end comes.
#[derive(Clone, Copy)]
enum KillOrder {
    /// At once, and sidecars wait for it.
    Regular,
    /// At once, and no other container waits for it.
    Unordered,
    /// After the regular ones and every sidecar further down the list.
    Sidecar(usize),
}

impl KillOrder {
    fn of(pod: Option<&Pod>, stop: &ContainerToKill) -> Self {
        let init = pod.map(PodExt::init).unwrap_or_default();
        match stop.kind {
            Some(ContainerKind::Regular) => Self::Regular,
            Some(ContainerKind::Sidecar) => init
                .iter()
                .position(|spec| spec.name == stop.name)
                .map_or(Self::Unordered, Self::Sidecar),
            Some(ContainerKind::Init | ContainerKind::Ephemeral) | None => Self::Unordered,
        }
    }

    fn ends_before(self, other: Self) -> bool {
        match (self, other) {
            (Self::Regular, Self::Sidecar(_)) => true,
            (Self::Sidecar(mine), Self::Sidecar(theirs)) => mine > theirs,
            _ => false,
        }
    }
}
