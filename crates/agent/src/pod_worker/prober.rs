//! The prober: probes of a pod's containers, as background tasks of its worker. A probe that hangs is a future that waits, and belongs to
//! its pod; how many connections and commands there are at once is bounded for a pod and for the node.

mod handlers;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_core::ids::ContainerId;
use oarsman_core::lifecycle::Hint;
use oarsman_core::pod::{ContainerKind, PodExt};
use oarsman_core::probe::ProbeKind;
use oarsman_core::prober::{MAX_ATTEMPTS, ProbeOutcome, ProbeSchedule, ProbeStart, ProbeWorker};
use oarsman_core::report::{ProbeAnswer, ProbeReport};
use oarsman_core::time::Mono;
use oarsman_core::view::{ContainerState, PodView};

use super::background::{BackgroundTasks, TaskKey};
use super::context::PodContext;
use crate::metrics::ProbeSeries;

pub(crate) use slots::ProbeSlots;

/// As much of an answer goes into the report, in characters.
const REPORTED_OUTPUT: usize = 400;

/// Makes the probes of pods.
pub(crate) struct Prober {
    slots: Arc<ProbeSlots>,
}

impl Default for Prober {
    fn default() -> Self {
        Self { slots: Arc::new(ProbeSlots::of_node()) }
    }
}

impl BackgroundTasks for Prober {
    fn wanted(
        &self,
        context: &PodContext,
        pod: &Pod,
        view: &PodView,
        is_terminating: bool,
    ) -> BTreeSet<TaskKey> {
        let results = context.probes.lock();
        let wanted = context.node.decisions.wanted_probes(pod, view, &results, is_terminating);
        let key = |kind: ProbeKind, id: ContainerId| TaskKey {
            kind: kind.name(),
            object: id.to_string(),
        };
        wanted.into_iter().map(|probe| key(probe.kind, probe.container)).collect()
    }

    fn start(
        &self,
        context: &Arc<PodContext>,
        pod: &Arc<Pod>,
        key: &TaskKey,
    ) -> BoxStream<'static, Hint> {
        let Some(probe) = ContainerProbe::new(context, pod, key, &self.slots) else {
            // What was wanted a moment ago has ended.
            return stream::empty().boxed();
        };
        let next = |mut probe: ContainerProbe| async {
            probe.next_result().await?;
            Some((Hint::Probe, probe))
        };
        stream::unfold(probe, next).boxed()
    }
}

/// One probe of one container.
struct ContainerProbe {
    context: Arc<PodContext>,
    pod: Arc<Pod>,
    /// The slots of all pods of the node.
    slots: Arc<ProbeSlots>,
    id: ContainerId,
    container_kind: ContainerKind,
    spec: Container,
    worker: ProbeWorker,
    /// What it is counted under.
    series: ProbeSeries,
}

impl ContainerProbe {
    fn new(
        context: &Arc<PodContext>,
        pod: &Arc<Pod>,
        key: &TaskKey,
        slots: &Arc<ProbeSlots>,
    ) -> Option<Self> {
        let kind = ProbeKind::ALL.into_iter().find(|kind| kind.name() == key.kind)?;
        let id = ContainerId::from(key.object.as_str());
        let (name, container_started) = context.reader.with(|view, _| running(view, &id))?;
        let wanted = pod.container(&name)?;
        let (container_kind, spec) = (wanted.kind, wanted.spec.into_owned());
        let (schedule, error) = ProbeSchedule::of(pod, &name, kind, kind.of(&spec)?);
        let event = error.map(|error| error.event().about(container_kind, &name));
        context.record_events(Some(pod), event);
        let clock = &context.node.seams.clock;
        let start = ProbeStart {
            now: clock.now(),
            container_started,
            agent_began: context.node.began,
            jitter: clock.jitter(),
        };
        let result = context.probes.lock().begin(&id, kind);
        let worker = ProbeWorker::new(kind, schedule, result, &start);
        let (pod_name, pod_uid) = (context.name.clone(), context.uid.clone());
        let series = ProbeSeries { kind, container: name, pod: pod_name, pod_uid };
        let (context, pod, slots) = (Arc::clone(context), Arc::clone(pod), Arc::clone(slots));
        Some(Self { context, pod, slots, id, container_kind, spec, worker, series })
    }

    /// Asks until the result is another one; none when there is nothing more to ask.
    async fn next_result(&mut self) -> Option<()> {
        loop {
            let due = self.worker.next_probe()?;
            self.context.node.seams.clock.until(Some(due)).await;
            let (outcome, began) = self.probe().await;
            let decisions = Arc::clone(&self.context.node.decisions);
            let result = decisions.record_probe(&mut self.worker, &outcome, began);
            self.report(&outcome, began);
            if let Some(result) = result {
                let kind = self.worker.kind();
                self.context.probes.lock().set(self.id.clone(), kind, result);
                return Some(());
            }
        }
    }

    /// One probe and when it began. One that cannot be carried out is repeated at once, a few times.
    async fn probe(&self) -> (ProbeOutcome, Mono) {
        let handler = handlers::Handler::of(self);
        let _own = handler.slot(&self.context.probe_slots).await;
        let _of_node = handler.slot(&self.slots).await;
        let began = self.context.now();
        let mut outcome = handler.run().await;
        for _ in 1..MAX_ATTEMPTS {
            if !matches!(outcome, ProbeOutcome::Error { .. }) {
                break;
            }
            outcome = handler.run().await;
        }
        (outcome, began)
    }

    /// Counts it, and tells people of it.
    fn report(&self, outcome: &ProbeOutcome, began: Mono) {
        let PodContext { node, uid, .. } = &*self.context;
        let ProbeSeries { kind, container, .. } = &self.series;
        node.metrics.probes.count(&self.series, outcome, self.context.now().since(began));
        let event = outcome.event(*kind).map(|event| event.about(self.container_kind, container));
        self.context.record_events(Some(&self.pod), event);
        let answer = ProbeReport {
            container: container.clone(),
            kind: *kind,
            answer: answer(outcome),
            output: outcome.output().chars().take(REPORTED_OUTPUT).collect(),
            in_a_row: self.worker.run_length(),
            at: node.seams.clock.wall(),
        };
        node.report_store.set_probe(uid, answer);
    }
}

fn answer(outcome: &ProbeOutcome) -> ProbeAnswer {
    match outcome {
        ProbeOutcome::Success { .. } | ProbeOutcome::Warning { .. } => ProbeAnswer::Good,
        ProbeOutcome::Failure { .. } => ProbeAnswer::Bad,
        ProbeOutcome::Error { .. } => ProbeAnswer::Error,
    }
}

/// The name of a container that runs, and since when.
fn running(view: &PodView, id: &ContainerId) -> Option<(String, jiff::Timestamp)> {
    let container = view.containers.iter().find(|container| container.id == *id)?;
    match container.state {
        ContainerState::Running { started_at } => Some((container.name.clone(), started_at)),
        ContainerState::Created | ContainerState::Exited(_) | ContainerState::Unknown => None,
    }
}
