//! A call that failed may have taken effect all the same. Before it is repeated, what it made is looked for under the name it was to
//! have; a name that stays reserved with nothing under it is skipped.

use std::collections::BTreeMap;

use crate::ids::{ContainerId, SandboxId};
use crate::view::{ContainerState, PodView};

/// Attempts whose names the runtime holds though it has nothing under them, by container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedAttempts {
    sandbox: Option<u32>,
    containers: BTreeMap<String, u32>,
}

impl ReservedAttempts {
    /// The first attempt of the sandbox from this one on whose name is not known to be reserved.
    pub fn free_sandbox(&self, attempt: u32) -> u32 {
        after(attempt, self.sandbox)
    }

    /// The first attempt of a container from this one on whose name is not known to be reserved.
    pub fn free_container(&self, name: &str, attempt: u32) -> u32 {
        after(attempt, self.containers.get(name).copied())
    }

    /// The runtime holds the name of this attempt of the sandbox.
    pub fn reserve_sandbox(&mut self, attempt: u32) {
        self.sandbox = self.sandbox.max(Some(attempt));
    }

    /// The runtime holds the name of this attempt of a container.
    pub fn reserve_container(&mut self, name: &str, attempt: u32) {
        let reserved = self.containers.entry(name.to_owned()).or_insert(attempt);
        *reserved = attempt.max(*reserved);
    }
}

fn after(attempt: u32, reserved: Option<u32>) -> u32 {
    reserved.map_or(attempt, |reserved| attempt.max(reserved.saturating_add(1)))
}

/// The sandbox that a failed call has made after all: the ready one of that attempt.
pub fn adopted_sandbox(view: &PodView, attempt: u32) -> Option<SandboxId> {
    let fits = view.sandboxes.iter().find(|sandbox| sandbox.attempt == attempt && sandbox.ready);
    fits.map(|sandbox| sandbox.id.clone())
}

/// The container that a failed call has made after all: of that name and attempt, in that sandbox, and not started yet.
pub fn adopted_container(
    view: &PodView,
    sandbox: &SandboxId,
    name: &str,
    attempt: u32,
) -> Option<ContainerId> {
    let fits = view.containers.iter().find(|container| {
        container.sandbox == *sandbox
            && container.name == name
            && container.label.restart_count == attempt
            && container.state == ContainerState::Created
    });
    fits.map(|container| container.id.clone())
}
