//! Registers the node with the API server, and updates its status.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node as Object;
use oarsman_cluster::{ClusterError, NodeStates, Registration, Result};
use oarsman_core::admission::NodeObjectState;
use oarsman_core::node::reports::ReportSchedule;
use oarsman_core::node::runtime::RuntimeHealth;
use oarsman_core::node::startup::NodeStartup;
use oarsman_core::node::{NodeStatusInput, change, events, object, status};
use oarsman_core::requeue::jittered_by;
use oarsman_core::resources::CgroupVersion;
use oarsman_core::time::Mono;
use tokio::time::{Instant, sleep_until, timeout};

use super::NodeStatusContext;
use super::retry::RetryTimer;
use crate::node::NodeIdentity;
use crate::ordered_watch;

/// Spreads the updates of nodes that started together.
const SPREAD: f64 = 0.04;

/// How long the first report waits for the first status of the runtime and the first image list.
const FIRST_STATUS_WAIT: Duration = Duration::from_millis(500);

pub(super) struct NodeStatusReporter {
    context: Arc<NodeStatusContext>,
    health: ordered_watch::Receiver<RuntimeHealth>,
    addresses: ordered_watch::Receiver<Vec<IpAddr>>,
    states: NodeStates,
    reports: ReportSchedule,
    /// Whether the node was last seen cordoned.
    is_cordoned: bool,
}

impl NodeStatusReporter {
    pub(super) fn new(context: Arc<NodeStatusContext>) -> Self {
        Self {
            health: context.node.runtime_health.subscribe(),
            addresses: context.node.addresses.subscribe(),
            states: context.object.states(),
            reports: ReportSchedule::every(context.node_status_config.report),
            is_cordoned: false,
            context,
        }
    }

    /// Registers the node, then updates its status until it is dropped.
    pub(super) async fn run(mut self) {
        self.context.node.node_events.send([events::starting()]);
        let resources = &self.context.node.config.settings.resources;
        let is_old = resources.cgroups == CgroupVersion::V1;
        self.context.node.node_events.send(is_old.then(events::old_cgroups));
        let mut images = self.context.images.subscribe();
        let first_words = async { (self.health.changed().await, images.changed().await) };
        timeout(FIRST_STATUS_WAIT, first_words).await.ok();
        let mut there = self.register_with_api_server().await;
        loop {
            self.update_node_status(&mut there).await;
            self.wait_for_next_update(&mut there).await;
        }
    }

    /// Creates the node's object, or reads the existing one; retries until that succeeds.
    async fn register_with_api_server(&mut self) -> Object {
        let mut retry = RetryTimer::start();
        loop {
            match self.try_register_with_api_server().await {
                Ok(node) => {
                    self.observe_node(&node);
                    return node;
                }
                Err(error) => {
                    if matches!(error, ClusterError::Gone { .. }) {
                        self.publish_admission_node(None);
                    }
                    let (node, attempt) = (self.name(), retry.attempt());
                    tracing::warn!(node, attempt, %error, "node not registered, will retry");
                }
            }
            retry.wait().await;
        }
    }

    async fn try_register_with_api_server(&mut self) -> Result<Object> {
        if self.context.node_status_config.registers {
            self.with_startup(NodeStartup::attempt);
            let new = self.with_input(object::registered);
            let created = self.context.object.create(&new);
            if let Registration::Created(node) =
                self.context.with_deadline("creation", created).await?
            {
                tracing::info!(node = self.name(), "node registered");
                self.with_startup(NodeStartup::register);
                self.on_patched(None, &new, true);
                return Ok(*node);
            }
        }
        let there = self.context.read().await?;
        if !self.context.node_status_config.registers {
            return Ok(there);
        }
        tracing::info!(node = self.name(), "node was registered before, its object is updated");
        let right = self.with_input(|input| object::reconciled(input, &there));
        if !change::differs(&there, &right) {
            return Ok(there);
        }
        self.patch_node_status(&there, &right, true).await
    }

    /// Sends the status if it changed or is due; retries until that succeeds.
    async fn update_node_status(&mut self, there: &mut Object) {
        let mut retry = RetryTimer::start();
        while let Err(error) = self.try_update_node_status(there).await {
            if matches!(error, ClusterError::Gone { .. }) {
                // The node was removed from the cluster. It is registered again when the agent restarts, or when its object is created.
                tracing::error!(node = self.name(), %error, "node object not found, node status not reported");
                return;
            }
            let (node, attempt) = (self.name(), retry.attempt());
            tracing::warn!(node, attempt, %error, "node status patch failed, will retry");
            retry.wait().await;
            if let Ok(read) = self.context.read().await {
                *there = read;
            }
        }
    }

    async fn try_update_node_status(&mut self, there: &mut Object) -> Result<()> {
        let right = self.with_input(|input| status::next(input, there));
        let changed = change::differs(there, &right);
        if changed || self.reports.are_due(self.context.node.seams.clock.mono()) {
            *there = self.patch_node_status(there, &right, changed).await?;
            self.publish_admission_node(Some(there));
        }
        Ok(())
    }

    async fn patch_node_status(
        &mut self,
        before: &Object,
        right: &Object,
        changed: bool,
    ) -> Result<Object> {
        let patch = change::patch(before, right);
        let patched =
            self.context.with_deadline("the status", self.context.object.patch(&patch)).await?;
        self.on_patched(Some(before), right, changed);
        Ok(patched)
    }

    fn on_patched(&mut self, before: Option<&Object>, right: &Object, changed: bool) {
        let clock = &self.context.node.seams.clock;
        self.reports.reported(changed, clock.mono(), clock.jitter());
        self.with_startup(|startup, now| startup.report(right, now));
        self.context.node.node_events.send(events::between(before, right));
    }

    fn with_startup(&self, step: impl FnOnce(&mut NodeStartup, Mono)) {
        let node = &self.context.node;
        step(&mut node.metrics.node_startup.lock(), node.seams.clock.mono());
    }

    /// Waits until the next update is due, or until the runtime's health or the node's addresses change. Changes that others make to the
    /// object are handled at the next update, so that they do not raise our request rate.
    async fn wait_for_next_update(&mut self, there: &mut Object) {
        let look = jittered_by(
            self.context.node_status_config.look,
            SPREAD,
            self.context.node.seams.clock.jitter(),
        );
        let due = Instant::now() + look;
        loop {
            tokio::select! {
                biased;
                Ok(_) = self.health.changed() => return,
                Ok(_) = self.addresses.changed() => return,
                Some(state) = self.states.next() => self.on_node_changed(state, there),
                () = sleep_until(due) => return,
            }
        }
    }

    fn on_node_changed(&mut self, state: Option<Object>, there: &mut Object) {
        let Some(state) = state.filter(|state| !is_older(state, there)) else { return };
        self.observe_node(&state);
        *there = state;
    }

    /// Takes over the identity and the cordon of the node's current object.
    fn observe_node(&mut self, node: &Object) {
        let uid = node.metadata.uid.clone().unwrap_or_default();
        let is_deleting = node.metadata.deletion_timestamp.is_some();
        let identity = Some(NodeIdentity { name: self.name().to_owned(), uid, is_deleting });
        self.context.identity.send_if_modified(|known| {
            let is_new = *known != identity;
            known.clone_from(&identity);
            is_new
        });
        self.publish_admission_node(Some(node));
        let is_cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
        let was_cordoned = std::mem::replace(&mut self.is_cordoned, is_cordoned);
        self.context.node.node_events.send(events::cordoned(
            self.name(),
            was_cordoned,
            is_cordoned,
        ));
    }

    /// Has pods admitted by this object of the node, or by the node's own facts if it has none.
    fn publish_admission_node(&self, object: Option<&Object>) {
        let own = &self.context.node.config.admission_node;
        let node = match object {
            Some(object) => own.with_object(object, NodeObjectState::Watched),
            None => own.clone(),
        };
        self.context.admission_node.send_if_modified(|known| {
            let is_new = *known != node;
            *known = node;
            is_new
        });
    }

    fn name(&self) -> &str {
        &self.context.node_status_config.profile.name
    }

    /// Calls `use_it` with the current state of the node.
    fn with_input<T>(&self, use_it: impl FnOnce(&NodeStatusInput<'_>) -> T) -> T {
        let images = self.context.images.get().unwrap_or_default();
        let input = NodeStatusInput {
            profile: &self.context.node_status_config.profile,
            machine: &self.context.node_status_config.machine,
            addresses: &self.context.node.addresses.get(),
            runtime: &self.context.node.runtime_health.get(),
            images: &images,
            pressures: Default::default(),
            storage_trouble: None,
            is_shutting_down: false,
            now: self.context.node.seams.clock.now(),
        };
        use_it(&input)
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
    fn a_state_older_than_the_known_one_of_the_same_object_is_ignored() {
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
