//! Metrics of the agent: durations and counts, read by the metrics endpoint and by benchmarks.

mod probes;

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_core::exposition::HistogramSnapshot;
use oarsman_sync::{Guarded, TaskPanics};

pub use probes::{ProbeMetrics, ProbeSeries};

/// The agent's metrics.
#[derive(Debug, Default)]
pub struct AgentMetrics {
    /// From when a pod was first seen until all its containers have been started.
    pub pod_start: Latency,
    /// One sync of a pod.
    pub sync: Latency,
    /// Creating a sandbox.
    pub sandbox: Latency,
    /// Pulling an image, without the wait for a slot.
    pub pull: Latency,
    /// One probe of a container, without the wait for a slot.
    pub probe: Latency,
    /// What probes came to, by container and kind.
    pub probes: ProbeMetrics,
    /// The number of containers of each admitted pod.
    pub containers_per_pod: Histogram<6>,
    /// How many pods were rejected, by reason.
    rejections: Guarded<BTreeMap<String, u64>>,
    /// How often each task has panicked.
    pub panics: TaskPanics,
}

impl AgentMetrics {
    /// A pod was not admitted.
    pub(crate) fn pod_rejected(&self, reason: &str) {
        *self.rejections.lock().entry(reason.to_owned()).or_default() += 1;
    }

    /// How many pods were rejected so far, by reason (`kubelet_admission_rejections_total`).
    pub fn admission_rejections(&self) -> BTreeMap<String, u64> {
        self.rejections.lock().clone()
    }
}

/// The upper bounds of counts of containers.
const CONTAINERS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
/// The upper bounds of durations, in seconds.
const SECONDS: [f64; 12] = [0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Latency(Histogram<12>);

impl Latency {
    /// Adds a duration.
    pub fn observe(&self, duration: Duration) {
        self.0.add(&SECONDS, duration.as_secs_f64());
    }

    /// What was measured so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        self.0.snapshot(&SECONDS)
    }
}

impl Histogram<6> {
    /// Adds the number of containers of a pod.
    pub fn count(&self, containers: usize) {
        self.add(&CONTAINERS, f64::from(u32::try_from(containers).unwrap_or(u32::MAX)));
    }

    /// What was counted so far.
    pub fn snapshot_counts(&self) -> HistogramSnapshot {
        self.snapshot(&CONTAINERS)
    }
}

/// Values sorted into buckets.
#[derive(Debug)]
pub struct Histogram<const N: usize>(Guarded<Buckets<N>>);

#[derive(Debug)]
struct Buckets<const N: usize> {
    counts: [u64; N],
    count: u64,
    sum: f64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self(Guarded::new(Buckets { counts: [0; N], count: 0, sum: 0.0 }))
    }
}

impl<const N: usize> Histogram<N> {
    fn add(&self, bounds: &[f64; N], value: f64) {
        let mut buckets = self.0.lock();
        let above = bounds.iter().zip(&mut buckets.counts).filter(|(bound, _)| value <= **bound);
        above.for_each(|(_, count)| *count += 1);
        buckets.count += 1;
        buckets.sum += value;
    }

    fn snapshot(&self, bounds: &[f64; N]) -> HistogramSnapshot {
        let buckets = self.0.lock();
        let pairs = bounds.iter().copied().zip(buckets.counts);
        HistogramSnapshot { buckets: pairs.collect(), count: buckets.count, sum: buckets.sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_counts_all_that_is_at_most_its_bound() {
        let metrics = AgentMetrics::default();
        for millis in [4, 5, 600, 400_000] {
            metrics.sync.observe(Duration::from_millis(millis));
        }
        let snapshot = metrics.sync.snapshot();
        let at = |bound: f64| snapshot.buckets.iter().find(|(b, _)| *b == bound).map(|(_, n)| *n);
        assert_eq!((at(0.005), at(0.5), at(1.0), at(300.0)), (Some(2), Some(2), Some(3), Some(3)));
        assert_eq!(snapshot.count, 4);
        assert!((snapshot.sum - 400.609).abs() < 1e-9);
        [1, 3, 40].into_iter().for_each(|containers| metrics.containers_per_pod.count(containers));
        let counts = metrics.containers_per_pod.snapshot_counts();
        assert_eq!(counts.buckets.first(), Some(&(1.0, 1)));
        assert_eq!((counts.buckets.last(), counts.count), (Some(&(32.0, 2)), 3));
    }
}
