//! Reads the runtime's state of the pod, and what its containers left as termination messages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::report::Activity;
use oarsman_core::time::Mono;
use oarsman_core::view::from_cri::ListedStates;
use oarsman_core::view::{Exit, PodView};
use oarsman_cri::CriError;
use oarsman_sync::Guarded;

use super::context::PodContext;
use crate::container_lifecycle::ContainerRef;
use crate::metrics::{container_type, exit_labels};
use crate::pod_reader;

/// What was read last.
#[derive(Debug)]
pub(super) struct PodStateReader(Guarded<ReaderState>);

#[derive(Debug)]
struct ReaderState {
    view: PodView,
    /// Whether there was a read at all.
    was_read: bool,
    /// When the first read was, until a sync has used it.
    first_read: Option<Mono>,
    /// The states that the last actions were computed from.
    acted_on: Option<ListedStates>,
    /// What ended containers left.
    termination_messages: BTreeMap<ContainerId, String>,
    /// Ended containers that resource managers know to have ended.
    post_stopped: BTreeSet<ContainerId>,
}

impl PodStateReader {
    pub(super) fn new(uid: &PodUid, name: &FullName) -> Self {
        let view = PodView::empty(uid.clone(), name.clone());
        Self(Guarded::new(ReaderState {
            view,
            was_read: false,
            first_read: None,
            acted_on: None,
            termination_messages: BTreeMap::new(),
            post_stopped: BTreeSet::new(),
        }))
    }

    /// The runtime's state of the pod, as last read.
    pub(super) fn view(&self) -> PodView {
        self.0.lock().view.clone()
    }

    /// Calls `with` on what was read last, without copying it.
    pub(super) fn with<T>(
        &self,
        with: impl FnOnce(&PodView, &BTreeMap<ContainerId, String>) -> T,
    ) -> T {
        let state = self.0.lock();
        with(&state.view, &state.termination_messages)
    }

    /// Actions were computed for the pod as it was read last.
    pub(super) fn set_acted_on(&self) {
        let mut state = self.0.lock();
        state.acted_on = Some(state.view.listed_states());
    }

    /// Whether a relist tells nothing that was not read and acted on. What a sync reads after its own actions it has not acted on: the
    /// event of a container that it started may be lost, and what comes after that container then waits for a relist.
    pub(super) fn is_acted_on(&self, listed: &ListedStates) -> bool {
        let state = self.0.lock();
        state.acted_on.as_ref() == Some(listed) && state.view.listed_states() == *listed
    }

    /// Waits for a read since the last call of this.
    pub(super) async fn was_read(&self) {
        self.0.changed().await;
    }

    /// The result of the first read, once, if it is no older than that: events tell what has happened since.
    pub(super) fn take_first_read(&self, now: Mono, within: Duration) -> Option<PodView> {
        let mut state = self.0.lock();
        let at = state.first_read.take()?;
        (now.since(at) < within).then(|| state.view.clone())
    }
}

impl ReaderState {
    /// Takes in what was read now, and gives the containers that have ended since the read before. What had ended before the first read
    /// was counted by an agent before this one.
    fn replace(&mut self, view: PodView) -> Vec<(String, Exit)> {
        let had_ended = |id: &ContainerId| {
            self.view.containers.iter().any(|seen| seen.id == *id && seen.state.exit().is_some())
        };
        let ended = view.containers.iter().filter(|seen| self.was_read && !had_ended(&seen.id));
        let ended = ended.filter_map(|seen| Some((seen.name.clone(), seen.state.exit()?.clone())));
        let ended = ended.collect();
        (self.view, self.was_read) = (view, true);
        ended
    }
}

impl PodContext {
    /// Counts containers that have ended. Those of an orphan are of no known type.
    fn count_ended(&self, ended: &[(String, Exit)]) {
        if ended.is_empty() {
            return;
        }
        let Some(known) = self.node.active_pods.by_uid(&self.uid) else { return };
        for (name, exit) in ended {
            if let Some(container) = known.pod.container(name) {
                let (code, reason) = exit_labels(exit);
                let labels = (container_type(container.kind), code, reason);
                self.node.metrics.terminated_containers.increment(labels);
            }
        }
    }

    /// Reads the runtime's state for the first time, and the record of an earlier agent. Tells whether nothing of the pod runs.
    pub(super) async fn first_read(&self, pod: Option<&Pod>) -> Result<bool, String> {
        // Probes begin with the read, and go on from what they had found before.
        self.restore_status(pod).await.map_err(|error| error.to_string())?;
        let view = self.read().await.map_err(|error| error.to_string())?;
        self.reader.0.lock().first_read = Some(self.now());
        Ok(view.nothing_runs())
    }

    /// Reads the runtime's state of the pod.
    pub(super) async fn read(&self) -> Result<PodView, CriError> {
        let reading = self.begin_activity(Activity::Looking);
        let runtime = self.node.seams.runtime.as_ref();
        let answer = pod_reader::read(runtime, &self.uid, &self.name).await;
        self.node.report_store.record_runtime_response(&answer);
        drop(reading);
        // Another agent may run a pod of the same UID in sandboxes of its own.
        let view = self.node.config.ownership.own_part(answer?);
        let ended = self.reader.0.update(|state| state.replace(view.clone()));
        self.count_ended(&ended);
        self.read_termination_messages(&view).await;
        self.post_stop_ended(&view).await;
        Ok(view)
    }

    /// Tells resource managers that a container has ended, once.
    pub(super) async fn post_stop(&self, container: &ContainerRef<'_>) {
        let is_known = |id| self.reader.0.lock().post_stopped.contains(id);
        if container.id.is_some_and(is_known) {
            return;
        }
        self.node.container_lifecycle.post_stop(container).await;
        self.reader.0.lock().post_stopped.extend(container.id.cloned());
    }

    /// Tells resource managers of every container that has ended.
    async fn post_stop_ended(&self, view: &PodView) {
        let is_there = |id: &ContainerId| view.containers.iter().any(|seen| seen.id == *id);
        self.reader.0.lock().post_stopped.retain(is_there);
        for ended in view.containers.iter().filter(|seen| seen.state.exit().is_some()) {
            let container = ContainerRef { pod: &self.uid, name: &ended.name, id: Some(&ended.id) };
            self.post_stop(&container).await;
        }
    }

    /// Reads what containers left as termination messages, once for each that has ended.
    async fn read_termination_messages(&self, view: &PodView) {
        let unread: Vec<_> = {
            let mut state = self.reader.0.lock();
            let messages = &mut state.termination_messages;
            messages.retain(|id, _| view.containers.iter().any(|c| c.id == *id));
            let ended = view.containers.iter().filter(|c| c.state.exit().is_some());
            ended.filter(|c| !messages.contains_key(&c.id)).cloned().collect()
        };
        for container in unread {
            match self.node.seams.pod_files.termination_message(&self.uid, &container).await {
                Ok(message) => {
                    self.reader.0.lock().termination_messages.insert(container.id, message);
                }
                Err(error) => {
                    let (pod, uid, container) = (&self.name, &self.uid, container.name);
                    tracing::warn!(%pod, %uid, container, %error, "termination message not read, will retry");
                }
            }
        }
    }
}
