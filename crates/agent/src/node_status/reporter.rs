//! Registers the node with the API server, and updates its status.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node as Object;
use oarsman_cluster::{ClusterError, NodeStates, Registration, Result};
use oarsman_core::node::reports::Reports;
use oarsman_core::node::runtime::Health;
use oarsman_core::node::{Scene, change, events, object, status};
use oarsman_core::requeue::stretched;
use oarsman_core::resources::CgroupVersion;
use tokio::time::{Instant, sleep_until, timeout};

use super::Office;
use super::tries::Tries;
use crate::latest;
use crate::node::NodeIdentity;

/// Spreads the updates of nodes that started together.
const SPREAD: f64 = 0.04;

/// How long the first report waits for the first status of the runtime and the first image list.
const FIRST_WORD: Duration = Duration::from_millis(500);

pub(super) struct Reporter {
    office: Arc<Office>,
    health: latest::Receiver<Health>,
    states: NodeStates,
    reports: Reports,
    /// Whether the node was last seen cordoned.
    is_cordoned: bool,
}

impl Reporter {
    pub(super) fn new(office: Arc<Office>) -> Self {
        Self {
            health: office.health.subscribe(),
            states: office.object.states(),
            reports: Reports::every(office.membership.report),
            is_cordoned: false,
            office,
        }
    }

    /// Runs for ever.
    pub(super) async fn run(mut self) {
        self.office.events.tell([events::starting()]);
        let resources = &self.office.node.config.settings.resources;
        let is_old = resources.cgroups == CgroupVersion::V1;
        self.office.events.tell(is_old.then(events::old_cgroups));
        let mut images = self.office.images.subscribe();
        let first_words = async { (self.health.changed().await, images.changed().await) };
        timeout(FIRST_WORD, first_words).await.ok();
        let mut there = self.register().await;
        loop {
            self.report(&mut there).await;
            self.wait(&mut there).await;
        }
    }

    /// Creates the node's object, or reads the existing one; retries until that succeeds.
    async fn register(&mut self) -> Object {
        let mut tries = Tries::begin();
        loop {
            match self.try_to_register().await {
                Ok(node) => {
                    self.met(&node);
                    return node;
                }
                Err(error) => {
                    let (node, attempt) = (self.name(), tries.attempt());
                    tracing::warn!(node, attempt, %error, "node not registered, will retry");
                }
            }
            tries.next().await;
        }
    }

    async fn try_to_register(&mut self) -> Result<Object> {
        if self.office.membership.registers {
            let new = self.with_scene(object::registered);
            let created = self.office.object.create(&new);
            if let Registration::Made(node) = self.office.in_time("creation", created).await? {
                tracing::info!(node = self.name(), "node registered");
                self.told(None, &new, true);
                return Ok(*node);
            }
        }
        let there = self.office.read().await?;
        if !self.office.membership.registers {
            return Ok(there);
        }
        tracing::info!(node = self.name(), "node was registered before, its object is updated");
        let right = self.with_scene(|scene| object::reconciled(scene, &there));
        if !change::differs(&there, &right) {
            return Ok(there);
        }
        self.tell(&there, &right, true).await
    }

    /// Sends the status if it changed or is due; retries until that succeeds.
    async fn report(&mut self, there: &mut Object) {
        let mut tries = Tries::begin();
        while let Err(error) = self.try_to_report(there).await {
            if matches!(error, ClusterError::Gone { .. }) {
                // The node was removed from the cluster. It is registered again when the agent restarts, or when its object is created.
                tracing::error!(node = self.name(), %error, "node object not found, node status not reported");
                return;
            }
            let (node, attempt) = (self.name(), tries.attempt());
            tracing::warn!(node, attempt, %error, "node status patch failed, will retry");
            tries.next().await;
            if let Ok(read) = self.office.read().await {
                *there = read;
            }
        }
    }

    async fn try_to_report(&mut self, there: &mut Object) -> Result<()> {
        let right = self.with_scene(|scene| status::next(scene, there));
        let changed = change::differs(there, &right);
        if changed || self.reports.are_due(self.office.node.seams.clock.mono()) {
            *there = self.tell(there, &right, changed).await?;
        }
        Ok(())
    }

    async fn tell(&mut self, before: &Object, right: &Object, changed: bool) -> Result<Object> {
        let patch = change::patch(before, right);
        let patched = self.office.in_time("the status", self.office.object.patch(&patch)).await?;
        self.told(Some(before), right, changed);
        Ok(patched)
    }

    fn told(&mut self, before: Option<&Object>, right: &Object, changed: bool) {
        let clock = &self.office.node.seams.clock;
        self.reports.told(changed, clock.mono(), clock.dice());
        self.office.events.tell(events::between(before, right));
    }

    /// Waits until the next update is due, or until the runtime's health changes. Changes that others make to the object are handled
    /// at the next update, so that they do not raise our request rate.
    async fn wait(&mut self, there: &mut Object) {
        let look =
            stretched(self.office.membership.look, SPREAD, self.office.node.seams.clock.dice());
        let due = Instant::now() + look;
        loop {
            tokio::select! {
                biased;
                Ok(_) = self.health.changed() => return,
                Some(state) = self.states.next() => self.heard(state, there),
                () = sleep_until(due) => return,
            }
        }
    }

    fn heard(&mut self, state: Option<Object>, there: &mut Object) {
        let Some(state) = state.filter(|state| !is_older(state, there)) else { return };
        self.met(&state);
        *there = state;
    }

    /// Takes over the identity and the cordon of the node's current object.
    fn met(&mut self, node: &Object) {
        let uid = node.metadata.uid.clone().unwrap_or_default();
        let identity = Some(NodeIdentity { name: self.name().to_owned(), uid });
        self.office.identity.send_if_modified(|known| {
            let is_new = *known != identity;
            known.clone_from(&identity);
            is_new
        });
        let is_cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
        let was_cordoned = std::mem::replace(&mut self.is_cordoned, is_cordoned);
        self.office.events.tell(events::cordoned(self.name(), was_cordoned, is_cordoned));
    }

    fn name(&self) -> &str {
        &self.office.membership.profile.name
    }

    /// Calls `use_it` with the current state of the node.
    fn with_scene<T>(&self, use_it: impl FnOnce(&Scene<'_>) -> T) -> T {
        let images = self.office.images.get().unwrap_or_default();
        let scene = Scene {
            profile: &self.office.membership.profile,
            machine: &self.office.membership.machine,
            runtime: &self.office.health.get(),
            images: &images,
            pressures: Default::default(),
            storage_trouble: None,
            is_shutting_down: false,
            now: self.office.node.seams.clock.now(),
        };
        use_it(&scene)
    }
}

/// Whether a state from the watch is older than the response to one of our own calls.
fn is_older(state: &Object, than: &Object) -> bool {
    let version = |object: &Object| object.metadata.resource_version.as_ref()?.parse::<u64>().ok();
    let is_same = state.metadata.uid == than.metadata.uid;
    is_same && version(state).zip(version(than)).is_some_and(|(state, than)| state < than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_counts_unless_a_newer_one_of_the_same_object_is_known() {
        let object = |uid: &str, version: &str| {
            let mut object = Object::default();
            object.metadata.uid = Some(uid.to_owned());
            object.metadata.resource_version = Some(version.to_owned());
            object
        };
        let known = object("1", "10");
        let rows = [("1", "9", true), ("1", "10", false), ("1", "11", false), ("2", "9", false)];
        for (uid, version, expected) in rows {
            assert_eq!(is_older(&object(uid, version), &known), expected, "{uid} {version}");
        }
        assert!(!is_older(&object("1", "opaque"), &known));
    }
}
