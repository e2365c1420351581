//! Counters and histograms, one by one and by label.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oarsman_core::exposition::{HistogramBuckets, HistogramSnapshot};
use oarsman_sync::Guarded;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Counts one more.
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were counted.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters by label. What writes it has a bounded set of labels.
#[derive(Debug)]
pub(crate) struct CounterVec<K>(Guarded<BTreeMap<K, u64>>);

impl<K> Default for CounterVec<K> {
    fn default() -> Self {
        Self(Guarded::new(BTreeMap::new()))
    }
}

impl<K: Ord + Clone> CounterVec<K> {
    /// Counts one more.
    pub(crate) fn increment(&self, label: K) {
        *self.0.lock().entry(label).or_default() += 1;
    }

    /// The counts so far.
    pub(crate) fn snapshot(&self) -> BTreeMap<K, u64> {
        self.0.lock().clone()
    }
}

/// A histogram.
#[derive(Debug)]
pub(crate) struct Histogram(Guarded<HistogramBuckets>);

impl Histogram {
    /// One without values, of these bounds.
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self(Guarded::new(HistogramBuckets::new(bounds)))
    }

    /// Adds a value.
    pub(crate) fn observe(&self, value: f64) {
        self.0.lock().add(value);
    }

    /// Adds a duration in seconds.
    pub(crate) fn observe_duration(&self, duration: Duration) {
        self.0.lock().add_duration(duration);
    }

    /// The values so far.
    pub(crate) fn snapshot(&self) -> HistogramSnapshot {
        self.0.lock().snapshot()
    }
}

/// Histograms by label. What writes it has a bounded set of labels.
#[derive(Debug)]
pub(crate) struct HistogramVec<K> {
    bounds: &'static [f64],
    series: Guarded<BTreeMap<K, HistogramBuckets>>,
}

impl<K: Ord + Clone> HistogramVec<K> {
    /// None yet; each has these bounds.
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, series: Guarded::new(BTreeMap::new()) }
    }

    /// Adds a duration in seconds.
    pub(crate) fn observe_duration(&self, label: K, duration: Duration) {
        let mut series = self.series.lock();
        let buckets = series.entry(label).or_insert_with(|| HistogramBuckets::new(self.bounds));
        buckets.add_duration(duration);
    }

    /// The values so far.
    pub(crate) fn snapshot(&self) -> BTreeMap<K, HistogramSnapshot> {
        let series = self.series.lock();
        series.iter().map(|(label, buckets)| (label.clone(), buckets.snapshot())).collect()
    }
}
