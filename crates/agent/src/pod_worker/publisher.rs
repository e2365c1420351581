//! Makes the pod's status, hands it to the status manager, and records that of static pods, which no API server remembers.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::lifecycle::{PodFailure, TerminationStage};
use oarsman_core::pod::PodExt;
use oarsman_core::probe::ProbeKind;
use oarsman_core::prober;
use oarsman_core::status::PodStatusInput;
use oarsman_core::status::deadline::{self, Deadline};
use oarsman_core::status::merge::{differs, published_before};
use oarsman_core::status::phase::Phase;
use oarsman_core::time::Mono;
use oarsman_state::FileError;
use oarsman_sync::Guarded;

use super::context::PodContext;
use crate::pod_reader;

/// The probes whose results a status tells.
const RESTORABLE: [ProbeKind; 2] = [ProbeKind::Startup, ProbeKind::Readiness];

/// What was made, published and recorded last.
#[derive(Debug, Default)]
pub(super) struct Publisher(Guarded<PublisherState>);

#[derive(Debug, Default)]
struct PublisherState {
    /// The status last made.
    status: Option<PodStatus>,
    /// What of it was published last.
    published: Option<PodStatus>,
    /// What is to be recorded: the status published last of a static pod, unless it is recorded already.
    unrecorded: Option<PodStatus>,
    /// Why nothing of the pod can be started.
    sync_error: Option<String>,
}

impl Publisher {
    /// Why nothing of the pod can be started; none once that is over.
    pub(super) fn set_sync_error(&self, error: Option<String>) {
        self.0.lock().sync_error = error;
    }
}

impl PodContext {
    /// Makes the pod's status of what is known, and hands it on if it says something new. Waits for nothing.
    pub(super) fn publish(
        &self,
        pod: &Pod,
        termination: Option<TerminationStage>,
        failure: Option<&PodFailure>,
    ) -> PodStatus {
        let (status, publishable, is_new) = self.make_and_store_status(pod, termination, failure);
        if pod.is_static() {
            // An agent that has just started knows from its record what was published, and the mirror pod may not show it.
            self.node.mirrors.set_status(&self.uid, &self.name, &publishable);
        } else if is_new {
            self.node.statuses.publish(&self.uid, &self.name, publishable);
        }
        status
    }

    /// The same, and records what was published if that is new. A record that fails here is tried again after the next publish.
    pub(super) async fn publish_and_record(&self, pod: &Pod) -> PodStatus {
        let status = self.publish(pod, None, None);
        self.record_unless_recorded().await;
        status
    }

    pub(super) async fn record_unless_recorded(&self) {
        if let Err(error) = self.record().await {
            tracing::warn!(pod = %self.name, uid = %self.uid, %error, "status record not written, will retry");
        }
    }

    /// Writes the status published last of a static pod to disk. A terminal one has to survive the machine: it is all that keeps
    /// the pod from running again.
    pub(super) async fn record(&self) -> Result<(), FileError> {
        let Some(status) = self.publisher.0.lock().unrecorded.take() else { return Ok(()) };
        let lasting = Phase::of(&status).is_some_and(Phase::is_terminal);
        let recorded = self.node.seams.records.write_status(&self.uid, &status, lasting).await;
        if recorded.is_err() {
            self.publisher.0.lock().unrecorded.get_or_insert(status);
        }
        recorded
    }

    /// Reads what an earlier agent published of the pod: from our own record of a pod that no API server remembers, else from the API
    /// server's copy; of a static pod that another agent ran, from its mirror pod. What was ready stays so until a probe says otherwise.
    pub(super) async fn restore_status(&self, pod: Option<&Pod>) -> Result<(), FileError> {
        let recorded = self.node.seams.records.read_status(&self.uid).await?;
        let published = recorded.as_ref().or_else(|| pod.and_then(|pod| pod.status.as_ref()));
        if let Some(status) = published {
            self.node.decisions.restore_probe_results(status, &mut self.probes.lock());
        }
        if let Some(pod) = pod.filter(|pod| pod.is_static())
            && let Some(status) = self.mirrored_status(pod).await
        {
            self.node.decisions.restore_probe_results(&status, &mut self.probes.lock());
        }
        let mut state = self.publisher.0.lock();
        (state.published, state.status) = (recorded.clone(), recorded);
        Ok(())
    }

    /// What the mirror pod of a static pod shows, if something of it runs whose probes have no result in the record. No other pod
    /// waits for the API server.
    async fn mirrored_status(&self, pod: &Pod) -> Option<PodStatus> {
        if !has_restorable_probes(pod) || self.node.seams.cluster.node().is_none() {
            return None;
        }
        let runtime = self.node.seams.runtime.as_ref();
        let view = pod_reader::read(runtime, &self.uid, &self.name).await.ok()?;
        let view = self.node.config.ownership.own_part(view);
        let is_unknown = {
            let results = self.probes.lock();
            let wanted = prober::wanted_probes(pod, &view, &results, false);
            let mut restorable = wanted.iter().filter(|probe| RESTORABLE.contains(&probe.kind));
            restorable.any(|probe| results.get(&probe.container, probe.kind).is_none())
        };
        if !is_unknown {
            return None;
        }
        self.node.mirrors.shown_status(&self.uid, &self.name).await
    }

    /// When the pod's active deadline passes.
    pub(super) fn active_deadline(&self, pod: &Pod) -> Option<Mono> {
        let state = self.publisher.0.lock();
        match deadline::check(pod, state.status.as_ref()?, self.node.seams.clock.wall()) {
            Deadline::In(left) => Some(self.now() + left),
            Deadline::None | Deadline::Exceeded => None,
        }
    }

    /// The status as it is, what of it may be published now, and whether that is something new.
    fn make_and_store_status(
        &self,
        pod: &Pod,
        termination: Option<TerminationStage>,
        failure: Option<&PodFailure>,
    ) -> (PodStatus, PodStatus, bool) {
        let mut state = self.publisher.0.lock();
        let now = self.node.seams.clock.wall();
        let (status, shown) = self.generate_api_pod_status(&state, pod, termination, failure);
        let previous = state.status.as_ref().or(pod.status.as_ref());
        self.node.recorder.record(pod, deadline::deadline_event(previous, &status));
        let before = published_before(state.published.as_ref(), pod.status.as_ref());
        let publishable = self.node.decisions.publishable_status(&before, &shown, termination, now);
        self.node.pod_updates.set_status(&self.uid, publishable.clone());
        self.node.report_store.set_status(&self.uid, &publishable);
        let is_new =
            state.published.as_ref().is_none_or(|published| differs(published, &publishable));
        state.status = Some(status.clone());
        if is_new {
            state.published = Some(publishable.clone());
            state.unrecorded = pod.is_static().then(|| publishable.clone());
        }
        (status, publishable, is_new)
    }

    /// The status, and as it is shown: a pod that has stopped but still holds something is shown as one that is stopping.
    fn generate_api_pod_status(
        &self,
        state: &PublisherState,
        pod: &Pod,
        termination: Option<TerminationStage>,
        failure: Option<&PodFailure>,
    ) -> (PodStatus, PodStatus) {
        let shown = match termination {
            Some(TerminationStage::Stopped) => Some(TerminationStage::Terminating),
            other => other,
        };
        let now = self.node.seams.clock.wall();
        let probes = self.probes.lock();
        let facts = self.node.facts();
        self.starter.with_errors(|start_errors| {
            self.reader.with(|view, termination_messages| {
                let input = |termination| PodStatusInput {
                    pod,
                    view,
                    previous: state.status.as_ref(),
                    start_errors,
                    held_by: state.sync_error.as_deref(),
                    probes: &probes,
                    termination_messages,
                    node: &facts,
                    resize_infeasible: self.node.resizes.contains(&self.uid),
                    termination,
                    failure,
                    now,
                };
                let decisions = &self.node.decisions;
                let status = decisions.status(&input(termination));
                let shown = match shown == termination {
                    true => status.clone(),
                    false => decisions.status(&input(shown)),
                };
                (status, shown)
            })
        })
    }
}

fn has_restorable_probes(pod: &Pod) -> bool {
    let containers = pod.all_containers();
    containers.iter().any(|it| RESTORABLE.into_iter().any(|kind| kind.of(&it.spec).is_some()))
}
