//! Random numbers from a seed: the same seed always gives the same numbers.

use std::time::Duration;

use crate::fnv::Fnv;

/// A pseudo-random number generator (splitmix64).
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

/// A probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probability {
    in_ten_thousand: u64,
}

impl Probability {
    /// Probability 0.
    pub const NEVER: Self = Self::in_ten_thousand(0);
    /// Probability 1.
    pub const ALWAYS: Self = Self::in_ten_thousand(10_000);
    /// Probability one half.
    pub const HALF: Self = Self::in_ten_thousand(5_000);

    /// So many in ten thousand.
    pub const fn in_ten_thousand(times: u64) -> Self {
        Self { in_ten_thousand: times }
    }

    /// So many in a hundred.
    pub const fn percent(times: u64) -> Self {
        Self::in_ten_thousand(times * 100)
    }
}

impl Rng {
    /// A generator with that seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A generator of its own for a purpose, so that more draws there change nothing here.
    #[must_use]
    pub fn fork(&self, purpose: &str) -> Self {
        let mut hash = Fnv::default();
        hash.update(purpose.as_bytes());
        Self::new(Self::new(self.state ^ hash.value()).next_u64())
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound; zero for the bound zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// Draws whether something of that probability happens.
    pub fn happens(&mut self, chance: Probability) -> bool {
        self.below(10_000) < chance.in_ten_thousand
    }

    /// Draws which of the things happens, if any: each with its probability, and none with the rest.
    pub fn one_of<T>(&mut self, things: impl IntoIterator<Item = (Probability, T)>) -> Option<T> {
        let mut roll = self.below(10_000);
        for (chance, thing) in things {
            if roll < chance.in_ten_thousand {
                return Some(thing);
            }
            roll -= chance.in_ten_thousand;
        }
        None
    }

    /// A duration in whole milliseconds, the resolution of virtual time, from zero up to this one.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        let millis = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX - 1);
        Duration::from_millis(self.below(millis + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_numbers_and_another_seed_others() {
        let rolls = |seed| {
            let mut rng = Rng::new(seed);
            [rng.next_u64(), rng.next_u64(), rng.next_u64()]
        };
        // The published first numbers of splitmix64 from zero.
        let zero = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!(rolls(0), zero);
        assert_ne!(rolls(1), zero);
    }

    #[test]
    fn forks_differ_by_purpose_and_do_not_change_the_original() {
        let rng = Rng::new(7);
        assert_eq!(rng.fork("a").next_u64(), rng.fork("a").next_u64());
        assert_ne!(rng.fork("a").next_u64(), rng.fork("b").next_u64());
    }

    #[test]
    fn probabilities_are_met_on_average() {
        let mut rng = Rng::new(3);
        let mut count = |chance| (0..10_000).filter(|_| rng.happens(chance)).count();
        assert_eq!(count(Probability::NEVER), 0);
        assert_eq!(count(Probability::ALWAYS), 10_000);
        let few = count(Probability::percent(5));
        assert!((400..600).contains(&few), "{few}");
    }

    #[test]
    fn one_of_several_things_happens_by_its_share() {
        let mut rng = Rng::new(3);
        let mut count = [0, 0, 0];
        for _ in 0..10_000 {
            let things = [(Probability::percent(10), 0), (Probability::percent(30), 1)];
            count[rng.one_of(things).unwrap_or(2)] += 1;
        }
        assert!((800..1_200).contains(&count[0]), "{count:?}");
        assert!((2_700..3_300).contains(&count[1]), "{count:?}");
    }

    #[test]
    fn times_stay_within_their_bound() {
        let mut rng = Rng::new(3);
        assert_eq!(rng.up_to(Duration::ZERO), Duration::ZERO);
        let two = Duration::from_millis(2);
        let times: Vec<_> = (0..100).map(|_| rng.up_to(two)).collect();
        assert!(times.iter().all(|time| *time <= two) && times.contains(&two), "{times:?}");
    }
}
