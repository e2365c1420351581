//! What probes came to and how long they took: the numbers behind `/metrics/probes`.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_core::exposition::{DEFAULT_SECONDS, Exposition, HistogramBuckets, MetricKind};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::probe::ProbeKind;
use oarsman_core::prober::{ProbeOutcome, ProbeTally};
use oarsman_sync::Guarded;

/// Counts of all probes of the node's pods. Those of a pod go with it.
#[derive(Debug, Default)]
pub struct ProbeMetrics(Guarded<BTreeMap<PodUid, PodProbes>>);

type PodProbes = BTreeMap<ProbeSeries, ProbeRecord>;

/// What is known of one probe.
#[derive(Debug)]
struct ProbeRecord {
    tally: ProbeTally,
    durations: HistogramBuckets,
}

impl Default for ProbeRecord {
    fn default() -> Self {
        let durations = HistogramBuckets::new(DEFAULT_SECONDS);
        Self { tally: ProbeTally::default(), durations }
    }
}

impl ProbeRecord {
    fn count(&mut self, outcome: &ProbeOutcome, duration: Duration) {
        self.tally.count(outcome);
        self.durations.add_duration(duration);
    }
}

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

impl ProbeSeries {
    fn labels(&self) -> [(&str, &str); 4] {
        let Self { kind, container, pod, .. } = self;
        let kind = match kind {
            ProbeKind::Startup => "Startup",
            ProbeKind::Liveness => "Liveness",
            ProbeKind::Readiness => "Readiness",
        };
        [
            ("probe_type", kind),
            ("container", container),
            ("pod", &pod.name),
            ("namespace", &pod.namespace),
        ]
    }
}

impl ProbeMetrics {
    pub(crate) fn count(&self, series: &ProbeSeries, outcome: &ProbeOutcome, duration: Duration) {
        let mut pods = self.0.lock();
        match pods.get_mut(&series.pod_uid).and_then(|pod| pod.get_mut(series)) {
            Some(record) => record.count(outcome, duration),
            None => {
                let pod = pods.entry(series.pod_uid.clone()).or_default();
                pod.entry(series.clone()).or_default().count(outcome, duration);
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
        pods.values().flatten().map(|(series, record)| (series.clone(), record.tally)).collect()
    }

    /// Writes the families of `/metrics/probes`.
    pub fn write(&self, out: &mut Exposition) {
        let tallies = self.snapshot();
        let help = "Probes of containers, by what they came to.";
        let mut family = out.family("prober_probe_total", MetricKind::Counter, help);
        for (series, ProbeTally { successful, failed, unknown }) in &tallies {
            let results = [("successful", successful), ("failed", failed), ("unknown", unknown)];
            for (result, count) in results.into_iter().filter(|(_, count)| **count > 0) {
                let [kind, container, pod, namespace] = series.labels();
                let uid = ("pod_uid", series.pod_uid.as_str());
                let labels = [kind, ("result", result), container, pod, namespace, uid];
                family.sample(&labels, *count as f64);
            }
        }
        let help = "How long probes of containers took, in seconds.";
        let mut family = out.family("prober_probe_duration_seconds", MetricKind::Histogram, help);
        for (series, durations) in self.durations_by_name() {
            family.histogram(&series.labels(), &durations.snapshot());
        }
    }

    /// The durations without the UIDs of pods: a pod and its successor of the same name are one series.
    fn durations_by_name(&self) -> BTreeMap<ProbeSeries, HistogramBuckets> {
        let mut merged: BTreeMap<ProbeSeries, HistogramBuckets> = BTreeMap::new();
        for (series, record) in self.0.lock().values().flatten() {
            let name = ProbeSeries { pod_uid: PodUid::from(""), ..series.clone() };
            match merged.get_mut(&name) {
                Some(durations) => durations.merge(&record.durations),
                None => drop(merged.insert(name, record.durations.clone())),
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn series(uid: &str, kind: ProbeKind) -> ProbeSeries {
        ProbeSeries {
            kind,
            container: "app".to_owned(),
            pod: FullName { name: "web".to_owned(), namespace: "default".to_owned() },
            pod_uid: uid.into(),
        }
    }

    #[test]
    fn probes_are_counted_by_container_and_kind_until_their_pod_is_gone() {
        let metrics = ProbeMetrics::default();
        metrics.count(&series("a", ProbeKind::Liveness), &ProbeOutcome::success(""), SECOND);
        metrics.count(&series("a", ProbeKind::Liveness), &ProbeOutcome::failure(""), SECOND);
        metrics.count(&series("a", ProbeKind::Readiness), &ProbeOutcome::error(""), SECOND);
        metrics.count(&series("b", ProbeKind::Readiness), &ProbeOutcome::success(""), SECOND);
        metrics.forget(&"b".into());
        let expected = [
            (series("a", ProbeKind::Liveness), ProbeTally { successful: 1, failed: 1, unknown: 0 }),
            (series("a", ProbeKind::Readiness), ProbeTally { unknown: 1, ..ProbeTally::default() }),
        ];
        assert_eq!(metrics.snapshot(), expected);
    }

    #[test]
    fn results_are_told_by_uid_and_durations_of_one_name_are_one_series() {
        let metrics = ProbeMetrics::default();
        metrics.count(&series("a", ProbeKind::Liveness), &ProbeOutcome::success(""), SECOND);
        metrics.count(&series("b", ProbeKind::Liveness), &ProbeOutcome::failure(""), SECOND * 20);
        let mut out = Exposition::default();
        metrics.write(&mut out);
        let text = out.into_text();
        let expected = r#"# HELP prober_probe_total Probes of containers, by what they came to.
# TYPE prober_probe_total counter
prober_probe_total{probe_type="Liveness",result="successful",container="app",pod="web",namespace="default",pod_uid="a"} 1
prober_probe_total{probe_type="Liveness",result="failed",container="app",pod="web",namespace="default",pod_uid="b"} 1
# HELP prober_probe_duration_seconds How long probes of containers took, in seconds.
# TYPE prober_probe_duration_seconds histogram
"#;
        assert!(text.starts_with(expected), "{text}");
        let labels = r#"probe_type="Liveness",container="app",pod="web",namespace="default""#;
        let name = "prober_probe_duration_seconds";
        for (suffix, bound, value) in [
            ("_bucket", ",le=\"0.5\"", 0),
            ("_bucket", ",le=\"1\"", 1),
            ("_bucket", ",le=\"10\"", 1),
            ("_bucket", ",le=\"+Inf\"", 2),
            ("_sum", "", 21),
            ("_count", "", 2),
        ] {
            let line = format!("\n{name}{suffix}{{{labels}{bound}}} {value}\n");
            assert_eq!(text.matches(&line).count(), 1, "{line} in {text}");
        }
    }
}
