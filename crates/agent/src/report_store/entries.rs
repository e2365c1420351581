//! The entries of the report store, by pod and by source.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::ids::PodUid;
use oarsman_core::lifecycle::WaitReason;
use oarsman_core::pod::PodExt;
use oarsman_core::probe::ProbeKind;
use oarsman_core::report::{NodeReport, PodActivity, PodReport, ProbeReport, StageReport};

use super::SourceReport;
use super::events::RecentEvents;

/// All entries. A copy shares the pods.
#[derive(Clone, Debug)]
pub(super) struct ReportEntries {
    /// The part that concerns no single pod; its lists stay empty.
    pub(super) about: NodeReport,
    pub(super) pods: BTreeMap<PodUid, PodEntry>,
    pub(super) events: RecentEvents,
    sources: BTreeMap<String, SourceReport>,
}

/// What is known of one pod.
#[derive(Clone, Debug)]
pub(super) struct PodEntry {
    pub(super) pod: Arc<Pod>,
    pub(super) stage: StageReport,
    pub(super) leaving: bool,
    next_try: Option<Timestamp>,
    waits_for: Option<WaitReason>,
    status: Option<Arc<PodStatus>>,
    /// By number, so that the newest is the last.
    doing: BTreeMap<u64, PodActivity>,
    begun: u64,
    /// By container and kind.
    probes: BTreeMap<(String, ProbeKind), ProbeReport>,
}

impl ReportEntries {
    pub(super) fn new(about: NodeReport) -> Self {
        let (pods, events, sources) = (BTreeMap::new(), RecentEvents::default(), BTreeMap::new());
        Self { about, pods, events, sources }
    }

    /// Whether that is something new.
    pub(super) fn set_source_report(&mut self, source: &str, found: SourceReport) -> bool {
        if self.sources.get(source) == Some(&found) {
            return false;
        }
        self.sources.insert(source.to_owned(), found);
        true
    }

    pub(super) fn report(&self) -> NodeReport {
        let mut pods: Vec<PodReport> =
            self.pods.values().map(|entry| entry.report(self.place(&entry.pod))).collect();
        pods.sort_by_cached_key(|pod| {
            let name = pod.pod.full_name();
            (name.namespace, name.name, pod.stage == StageReport::Waiting)
        });
        let broken = self.sources.values().flat_map(|found| found.broken.iter().cloned());
        NodeReport {
            broken: broken.collect(),
            pods,
            events: self.events.all(),
            ..self.about.clone()
        }
    }

    /// The file or URL that a static pod comes from; none for a pod of the API server.
    fn place(&self, pod: &Pod) -> Option<String> {
        let name = pod.full_name();
        let mut places = self.sources.values().flat_map(|found| &found.places);
        let place = places.find(|(of, _)| *of == name).filter(|_| pod.is_static());
        place.map(|(_, place)| place.clone())
    }
}

impl PodEntry {
    pub(super) fn new(pod: Arc<Pod>, stage: StageReport) -> Self {
        Self {
            pod,
            stage,
            leaving: false,
            next_try: None,
            waits_for: None,
            status: None,
            doing: BTreeMap::new(),
            begun: 0,
            probes: BTreeMap::new(),
        }
    }

    /// Whether that is something new.
    pub(super) fn set_stage(&mut self, stage: StageReport) -> bool {
        // A pod that is started again is no longer being removed.
        self.leaving &= stage != StageReport::Syncing;
        if self.stage == stage {
            return false;
        }
        // The retry of an earlier stage does not apply any more.
        (self.stage, self.next_try, self.waits_for) = (stage, None, None);
        true
    }

    /// Whether that is something new.
    pub(super) fn set_wait(
        &mut self,
        next_try: Option<Timestamp>,
        waits_for: Option<&WaitReason>,
    ) -> bool {
        let is_new = (self.next_try, self.waits_for.as_ref()) != (next_try, waits_for);
        (self.next_try, self.waits_for) = (next_try, waits_for.cloned());
        is_new
    }

    /// Whether that is something new.
    pub(super) fn set_status(&mut self, status: &PodStatus) -> bool {
        let new = self.status.as_deref() != Some(status);
        if new {
            self.status = Some(Arc::new(status.clone()));
        }
        new
    }

    /// Whether that is something new: one more answer like the one before is not.
    pub(super) fn set_probe(&mut self, answer: ProbeReport) -> bool {
        let key = (answer.container.clone(), answer.kind);
        let before = self.probes.get(&key);
        let is_new = before.is_none_or(|before| {
            (before.answer, &before.output) != (answer.answer, &answer.output)
        });
        self.probes.insert(key, answer);
        is_new
    }

    /// Returns the number by which it ends.
    pub(super) fn begin_activity(&mut self, doing: PodActivity) -> u64 {
        self.begun += 1;
        self.doing.insert(self.begun, doing);
        self.begun
    }

    /// Tells whether it was under way.
    pub(super) fn end_activity(&mut self, number: u64) -> bool {
        self.doing.remove(&number).is_some()
    }

    fn report(&self, place: Option<String>) -> PodReport {
        let mut pod = Pod::clone(&self.pod);
        if let Some(status) = &self.status {
            pod.status = Some(PodStatus::clone(status));
        }
        PodReport {
            pod,
            place,
            stage: self.stage,
            leaving: self.leaving,
            doing: self.doing.values().next_back().cloned(),
            next_try: self.next_try,
            waits_for: self.waits_for.as_ref().map(ToString::to_string),
            last_error: self.waits_for.as_ref().and_then(WaitReason::error).map(str::to_owned),
            probes: self.probes.values().cloned().collect(),
        }
    }
}
