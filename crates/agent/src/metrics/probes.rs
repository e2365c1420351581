//! What probes came to: the numbers behind `prober_probe_total`.

use std::collections::BTreeMap;

use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::probe::ProbeKind;
use oarsman_core::prober::{ProbeOutcome, ProbeTally};
use oarsman_sync::Guarded;

/// Counts of all probes of the node's pods. Those of a pod go with it.
#[derive(Debug, Default)]
pub struct ProbeMetrics(Guarded<BTreeMap<PodUid, PodTallies>>);

type PodTallies = BTreeMap<ProbeSeries, ProbeTally>;

/// The labels of one count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbeSeries {
    /// Startup, liveness or readiness.
    pub kind: ProbeKind,
    /// The container's name.
    pub container: String,
    /// The pod's name and namespace.
    pub pod: FullName,
    /// The pod's UID.
    pub pod_uid: PodUid,
}

impl ProbeMetrics {
    pub(crate) fn count(&self, series: &ProbeSeries, outcome: &ProbeOutcome) {
        let mut pods = self.0.lock();
        match pods.get_mut(&series.pod_uid).and_then(|pod| pod.get_mut(series)) {
            Some(tally) => tally.count(outcome),
            None => {
                let pod = pods.entry(series.pod_uid.clone()).or_default();
                pod.entry(series.clone()).or_default().count(outcome);
            }
        }
    }

    /// The pod is gone, or is no longer asked.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.0.lock().remove(uid);
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> Vec<(ProbeSeries, ProbeTally)> {
        let pods = self.0.lock();
        pods.values().flatten().map(|(series, tally)| (series.clone(), *tally)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_counted_by_container_and_kind_until_their_pod_is_gone() {
        let series = |uid: &str, kind| ProbeSeries {
            kind,
            container: "app".to_owned(),
            pod: FullName { name: "web".to_owned(), namespace: "default".to_owned() },
            pod_uid: uid.into(),
        };
        let metrics = ProbeMetrics::default();
        metrics.count(&series("a", ProbeKind::Liveness), &ProbeOutcome::success(""));
        metrics.count(&series("a", ProbeKind::Liveness), &ProbeOutcome::failure(""));
        metrics.count(&series("a", ProbeKind::Readiness), &ProbeOutcome::error(""));
        metrics.count(&series("b", ProbeKind::Readiness), &ProbeOutcome::success(""));
        metrics.forget(&"b".into());
        let expected = [
            (series("a", ProbeKind::Liveness), ProbeTally { successful: 1, failed: 1, unknown: 0 }),
            (series("a", ProbeKind::Readiness), ProbeTally { unknown: 1, ..ProbeTally::default() }),
        ];
        assert_eq!(metrics.snapshot(), expected);
    }
}
