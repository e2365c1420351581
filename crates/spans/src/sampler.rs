//! Which traces are sampled.

use crate::ids::TraceId;

const MILLION: u32 = 1_000_000;

/// Samples a part of all traces by their ids, by the same rule as the Go kubelet: 63 bits of the id are a number, and those below a bound count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampler {
    bound: u64,
}

impl Sampler {
    /// So many of a million.
    pub(crate) fn per_million(rate: u32) -> Self {
        let bound = (u128::from(rate.min(MILLION)) << 63) / u128::from(MILLION);
        // At most 2^63.
        Self { bound: u64::try_from(bound).unwrap_or(u64::MAX) }
    }

    pub(crate) fn samples(self, trace: TraceId) -> bool {
        trace.low >> 1 < self.bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::IdSource;

    #[test]
    fn the_bound_is_that_part_of_all_ids() {
        // The rate, and the last number that is sampled.
        for (rate, last) in [
            (1, Some((1_u64 << 63) / 1_000_000 - 1)),
            (250_000, Some((1 << 61) - 1)),
            (1_000_000, Some((1 << 63) - 1)),
            (2_000_000, Some((1 << 63) - 1)),
            (0, None),
        ] {
            let sampler = Sampler::per_million(rate);
            let is_sampled = |number: u64| sampler.samples(TraceId { high: 7, low: number << 1 });
            assert_eq!(is_sampled(0), last.is_some(), "{rate}");
            if let Some(last) = last {
                assert!(is_sampled(last), "{rate}");
                assert!(last == (1 << 63) - 1 || !is_sampled(last + 1), "{rate}");
            }
        }
    }

    #[test]
    fn of_many_ids_about_that_part_is_sampled() {
        let (ids, sampler) = (IdSource::default(), Sampler::per_million(300_000));
        let sampled = (0..10_000).filter(|_| sampler.samples(ids.trace())).count();
        // Ten standard deviations on either side.
        assert!((2_540..=3_460).contains(&sampled), "{sampled}");
    }
}
