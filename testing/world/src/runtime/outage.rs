//! The runtime going away and coming back, while its containers run on.

use std::time::Duration;

use oarsman_cri_types::v1::{CreateContainerRequest, RunPodSandboxRequest};
use oarsman_sync::latest as watch;

use super::containers::{Container, Life};
use super::state::State;
use super::{FakeRuntime, names};
use crate::dice::Chance;
use crate::line::Service;
use crate::trace::{ContainerChange, Entry};

impl Service for FakeRuntime {
    /// Subscriptions end, names without things are free again, and of containers that were created
    /// or run some are lost: the runtime says it does not know what state they are in.
    fn restart(&self, down: Duration, forgets: Chance) {
        self.state().restart(down, forgets);
        self.0.outages.send_modify(|count| *count += 1);
    }

    fn outages(&self) -> watch::Receiver<u64> {
        self.0.outages.subscribe()
    }
}

impl FakeRuntime {
    /// Reserves the name that a new sandbox would have, and makes none.
    pub(super) fn block_sandbox(&self, request: &RunPodSandboxRequest, time: Option<Duration>) {
        let metadata = request.config.as_ref().and_then(|config| config.metadata.as_ref());
        if let Some(metadata) = metadata {
            self.state().block(names::of_sandbox(metadata), time);
        }
    }

    /// Reserves the name that a new container would have, and makes none.
    pub(super) fn block_container(&self, request: &CreateContainerRequest, time: Option<Duration>) {
        let mut state = self.state();
        let sandbox = state.sandboxes.get(&request.pod_sandbox_id);
        let metadata = request.config.as_ref().and_then(|config| config.metadata.as_ref());
        if let (Some(sandbox), Some(metadata)) = (sandbox, metadata) {
            let name = names::of_container(metadata, &sandbox.metadata);
            state.block(name, time);
        }
    }
}

impl State {
    fn restart(&mut self, down: Duration, forgets: Chance) {
        self.trace.append(Entry::RuntimeRestarted { down });
        self.away_until = Some(self.clock.elapsed() + down);
        self.events.restart();
        self.names.forget_nothings();
        let alive = self.containers.values().filter(|one| !matches!(one.life, Life::Exited(_)));
        let alive: Vec<String> = alive.filter(|one| !one.lost).map(|one| one.id.clone()).collect();
        for id in alive {
            if self.dice.happens(forgets) {
                self.saw(&id, ContainerChange::Lost);
                self.containers.entry(id).and_modify(Container::lose);
            }
        }
    }

    fn block(&mut self, name: String, time: Option<Duration>) {
        let (now, id) = (self.clock.elapsed(), self.next_id());
        self.names.block(name, id, now, time.map(|time| now + time));
    }
}

impl Container {
    fn lose(&mut self) {
        self.lost = true;
    }
}
