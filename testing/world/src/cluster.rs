//! A fake API server in memory with the semantics of the real one: versions, generations, UIDs and the rules of deletion.
//!
//! All its pods count as bound to the one node. Users call its own methods, which never fail; an agent calls it through [`connect`], over a link
//! that does.

mod certificates;
mod change;
mod client;
mod config;
mod deletion;
mod history;
mod node;
mod objects;
mod outage;
#[cfg(test)]
mod tests;
mod tokens;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard};

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::event_queue::CountedEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::references::ObjectChange;
use oarsman_sync::ordered_watch;
use tokio::runtime::Handle;

pub use change::ClusterChange;
pub use client::connect;
pub use history::{AgentDeletion, PublishedStatus, RecordedEvent};
pub use node::NodeHistory;

use crate::clock::WorldClock;
use crate::lock;
use crate::rng::Rng;
use crate::trace::Trace;
use objects::FakeClusterState;

/// The fake API server; clones are the same server.
#[derive(Clone)]
pub struct FakeCluster(Arc<ClusterInner>);

struct ClusterInner {
    /// Never held across an await.
    state: Mutex<FakeClusterState>,
    /// The newest resource version.
    newest: ordered_watch::Sender<u64>,
    /// All changes of objects that pods refer to, in order.
    changed: ordered_watch::Sender<Vec<ObjectChange>>,
    /// Counts outages.
    outages: ordered_watch::Sender<u64>,
    /// The world's own, which outlives agents.
    executor: Handle,
}

impl FakeCluster {
    /// A server without pods.
    pub fn new(clock: WorldClock, trace: Trace, rng: Rng) -> Self {
        let state = Mutex::new(FakeClusterState::new(clock, trace, rng));
        Self(Arc::new(ClusterInner {
            state,
            newest: ordered_watch::Sender::new(0),
            changed: ordered_watch::Sender::new(Vec::new()),
            outages: ordered_watch::Sender::new(0),
            executor: Handle::current(),
        }))
    }

    /// Creates a pod and returns it as stored; none when its name is taken. It gets a UID if it has none.
    pub fn create(&self, pod: Pod) -> Option<Pod> {
        self.change(|state| state.create(pod))
    }

    /// Changes a pod and returns it as stored; none when there is none. Its identity and its deletion are not changed.
    pub fn update(&self, name: &FullName, change: impl FnOnce(&mut Pod)) -> Option<Pod> {
        self.change(|state| state.update(name, change))
    }

    /// Deletes a pod as a user would: with that grace period, or the pod's own. False when there is none.
    pub fn delete(&self, name: &FullName, grace: Option<i64>) -> bool {
        self.change(|state| state.delete(name, grace))
    }

    /// A pod as stored.
    pub fn get(&self, name: &FullName) -> Option<Pod> {
        self.state().pods.get(name).cloned()
    }

    /// Every pod as stored.
    pub fn list(&self) -> Vec<Pod> {
        self.state().pods.values().cloned().collect()
    }

    /// Every status that an agent has published and the server has accepted, in order.
    pub fn statuses(&self) -> Vec<PublishedStatus> {
        self.state().history.statuses.clone()
    }

    /// Every object an agent has deleted, in order.
    pub fn agent_deletions(&self) -> Vec<AgentDeletion> {
        self.state().history.deletions.clone()
    }

    /// The latest events that agents have recorded, in order.
    pub fn events(&self) -> Vec<RecordedEvent> {
        self.state().history.events.iter().cloned().collect()
    }

    fn publish(&self, name: &FullName, uid: &PodUid, status: PodStatus) -> Result<(), ApiFailure> {
        self.check_available()?;
        self.change(|state| state.publish(name, uid, status))
    }

    fn delete_by_agent(&self, name: &FullName, uid: &PodUid) -> Result<(), ApiFailure> {
        self.check_available()?;
        self.change(|state| state.delete_by_agent(name, uid))
    }

    fn record(&self, event: CountedEvent) -> Result<(), ApiFailure> {
        self.check_available()?;
        self.state().record(event);
        Ok(())
    }

    /// Every pod, and the resource version of the list.
    fn snapshot(&self) -> Result<(u64, Vec<Pod>), ApiFailure> {
        self.check_available()?;
        let state = self.state();
        Ok((state.version, state.pods.values().cloned().collect()))
    }

    /// Makes a change and notifies watchers.
    fn change<T>(&self, change: impl FnOnce(&mut FakeClusterState) -> T) -> T {
        let mut state = self.state();
        let result = change(&mut state);
        self.0
            .newest
            .send_if_modified(|newest| std::mem::replace(newest, state.version) != state.version);
        result
    }

    /// The state, also while the server is away.
    fn state(&self) -> MutexGuard<'_, FakeClusterState> {
        lock(&self.0.state)
    }

    /// Fails while the server is away.
    fn check_available(&self) -> Result<(), ApiFailure> {
        if self.state().is_away() {
            return Err(ApiFailure::Unavailable("the API server is not there".to_owned()));
        }
        Ok(())
    }
}

/// Why a call failed.
#[derive(Debug)]
enum ApiFailure {
    /// There is no such object, or one of another UID has its name.
    Gone,
    /// The server is away or fails.
    Unavailable(String),
}
