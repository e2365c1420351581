//! Values sorted into the buckets of a histogram.

use std::time::Duration;

use super::HistogramSnapshot;

/// The upper bounds of durations in seconds where a family has none of its own: those of the Prometheus clients.
pub const DEFAULT_SECONDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The values of one series so far.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramBuckets {
    bounds: &'static [f64],
    /// For each bound, how many values are at most that.
    counts: Vec<u64>,
    count: u64,
    sum: f64,
}

impl HistogramBuckets {
    /// No values yet; the bounds rise.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len()], count: 0, sum: 0.0 }
    }

    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        let buckets = self.bounds.iter().zip(&mut self.counts);
        buckets.filter(|(bound, _)| value <= **bound).for_each(|(_, count)| *count += 1);
        self.count += 1;
        self.sum += value;
    }

    /// Adds a duration in seconds.
    pub fn add_duration(&mut self, duration: Duration) {
        self.add(duration.as_secs_f64());
    }

    /// Adds the values of a series with the same bounds.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// The values so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let buckets = self.bounds.iter().copied().zip(self.counts.iter().copied());
        HistogramSnapshot { buckets: buckets.collect(), count: self.count, sum: self.sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: &[f64] = &[1.0, 2.0, 4.0];

    fn of(values: &[f64]) -> HistogramBuckets {
        let mut buckets = HistogramBuckets::new(BOUNDS);
        values.iter().for_each(|value| buckets.add(*value));
        buckets
    }

    #[test]
    fn a_bucket_counts_all_that_is_at_most_its_bound() {
        let rows: [(&[f64], [u64; 3], u64, f64); 4] = [
            (&[], [0, 0, 0], 0, 0.0),
            (&[1.0], [1, 1, 1], 1, 1.0),
            (&[1.5, 4.5], [0, 1, 1], 2, 6.0),
            (&[0.5, 2.0, 3.0, 100.0], [1, 2, 3], 4, 105.5),
        ];
        for (values, counts, count, sum) in rows {
            let buckets = BOUNDS.iter().copied().zip(counts).collect();
            assert_eq!(of(values).snapshot(), HistogramSnapshot { buckets, count, sum });
        }
    }

    #[test]
    fn merged_series_have_the_values_of_both() {
        let mut both = of(&[0.5, 3.0]);
        both.merge(&of(&[1.5]));
        assert_eq!(both, of(&[0.5, 3.0, 1.5]));
        let mut seconds = of(&[]);
        seconds.add_duration(Duration::from_millis(1_500));
        assert_eq!(seconds, of(&[1.5]));
    }
}
