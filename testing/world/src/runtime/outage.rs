//! Outages and restarts of the runtime, while its containers run on.

use std::time::Duration;

use oarsman_cri_types::v1::{CreateContainerRequest, RunPodSandboxRequest};
use oarsman_sync::ordered_watch as watch;

use super::containers::{ContainerRunState, FakeContainer};
use super::state::FakeRuntimeState;
use super::{FakeRuntime, names};
use crate::link::RemoteService;
use crate::rng::Probability;
use crate::trace::{ContainerTransition, TraceEntry};

impl RemoteService for FakeRuntime {
    /// Subscriptions end, names without objects are free again, and some of the containers that were created or run are lost: the runtime
    /// reports their state as unknown.
    fn restart(&self, down: Duration, forgets: Probability) {
        self.state().restart(down, forgets);
        self.0.outages.send_modify(|count| *count += 1);
    }

    fn outages(&self) -> watch::Receiver<u64> {
        self.0.outages.subscribe()
    }
}

impl FakeRuntime {
    /// Takes the network for pods away, as a CNI plugin that is restarted does: the runtime says so, and creates no sandbox that needs it.
    pub fn lose_network(&self, down: Duration) {
        let mut state = self.state();
        state.trace.append(TraceEntry::NetworkLost { down });
        state.no_network_until = Some(state.clock.elapsed() + down);
    }

    /// Reserves the name that a new sandbox would have, and makes none.
    pub(super) fn reserve_sandbox_name(
        &self,
        request: &RunPodSandboxRequest,
        time: Option<Duration>,
    ) {
        let metadata = request.config.as_ref().and_then(|config| config.metadata.as_ref());
        if let Some(metadata) = metadata {
            self.state().reserve(names::of_sandbox(metadata), time);
        }
    }

    /// Reserves the name that a new container would have, and makes none.
    pub(super) fn reserve_container_name(
        &self,
        request: &CreateContainerRequest,
        time: Option<Duration>,
    ) {
        let mut state = self.state();
        let sandbox = state.sandboxes.get(&request.pod_sandbox_id);
        let metadata = request.config.as_ref().and_then(|config| config.metadata.as_ref());
        if let (Some(sandbox), Some(metadata)) = (sandbox, metadata) {
            let name = names::of_container(metadata, &sandbox.metadata);
            state.reserve(name, time);
        }
    }
}

impl FakeRuntimeState {
    fn restart(&mut self, down: Duration, forgets: Probability) {
        self.trace.append(TraceEntry::RuntimeRestarted { down });
        self.away_until = Some(self.clock.elapsed() + down);
        self.events.restart();
        self.names.release_unused();
        let alive = self
            .containers
            .values()
            .filter(|one| !matches!(one.run_state, ContainerRunState::Exited(_)));
        let alive: Vec<String> = alive.filter(|one| !one.lost).map(|one| one.id.clone()).collect();
        for id in alive {
            if self.rng.happens(forgets) {
                self.trace_change(&id, ContainerTransition::Lost);
                self.containers.entry(id).and_modify(FakeContainer::lose);
            }
        }
    }

    fn reserve(&mut self, name: String, time: Option<Duration>) {
        let (now, id) = (self.clock.elapsed(), self.next_id());
        self.names.reserve(name, id, now, time.map(|time| now + time));
    }
}

impl FakeContainer {
    fn lose(&mut self) {
        self.lost = true;
    }
}
