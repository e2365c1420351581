//! The entries of the report store, by pod and by source.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{NodeReport, PodActivity, PodReport, StageReport};

use super::SourceReport;
use super::events::RecentEvents;

/// All entries.
#[derive(Debug)]
pub(super) struct ReportEntries {
    /// The part that concerns no single pod; its lists stay empty.
    pub(super) about: NodeReport,
    pub(super) pods: BTreeMap<PodUid, PodEntry>,
    pub(super) events: RecentEvents,
    sources: BTreeMap<String, SourceReport>,
}

/// What is known of one pod.
#[derive(Debug)]
pub(super) struct PodEntry {
    pub(super) pod: Arc<Pod>,
    pub(super) stage: StageReport,
    pub(super) leaving: bool,
    next_try: Option<Timestamp>,
    waits_for: Option<String>,
    status: Option<PodStatus>,
    /// By number, so that the newest is the last.
    doing: BTreeMap<u64, PodActivity>,
    begun: u64,
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
        waits_for: Option<String>,
    ) -> bool {
        let is_new = (self.next_try, &self.waits_for) != (next_try, &waits_for);
        (self.next_try, self.waits_for) = (next_try, waits_for);
        is_new
    }

    /// Whether that is something new.
    pub(super) fn set_status(&mut self, status: &PodStatus) -> bool {
        let new = self.status.as_ref() != Some(status);
        if new {
            self.status = Some(status.clone());
        }
        new
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
            pod.status = Some(status.clone());
        }
        PodReport {
            pod,
            place,
            stage: self.stage,
            leaving: self.leaving,
            doing: self.doing.values().next_back().cloned(),
            next_try: self.next_try,
            waits_for: self.waits_for.clone(),
        }
    }
}
