//! How often the API server is asked about clients: reviews cost it more than a request costs a client that invents tokens.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use oarsman_sync::Guarded;
use tokio::time::Instant;

/// For one address: ten a second, forty at once.
const OF_AN_ADDRESS: BucketRate =
    BucketRate { interval: Duration::from_millis(100), burst: Duration::from_secs(4) };
/// For all: fifty a second, a hundred at once.
const IN_ALL: BucketRate =
    BucketRate { interval: Duration::from_millis(20), burst: Duration::from_secs(2) };
/// Addresses that are remembered; of more the first are forgotten, while all together are limited still.
const MAX_ADDRESSES: usize = 4096;
/// How long it counts that the API server has confirmed a client of an address.
const KNOWN_FOR: Duration = Duration::from_secs(60 * 60);

/// How a token bucket fills: a token every interval, and as many as fill the burst.
#[derive(Clone, Copy, Debug)]
struct BucketRate {
    interval: Duration,
    burst: Duration,
}

/// Buckets for each address, for all that are known, and for all others: those that invent tokens use up none of the clients that
/// were here before.
#[derive(Debug, Default)]
pub(crate) struct ReviewThrottle(Guarded<Buckets>);

/// A bucket is kept as the time at which it will be full.
#[derive(Debug, Default)]
struct Buckets {
    unknown: Option<Instant>,
    known: Option<Instant>,
    by_address: BTreeMap<IpAddr, Instant>,
    /// Until when an address is known.
    known_until: BTreeMap<IpAddr, Instant>,
}

impl ReviewThrottle {
    /// Takes a token for a question about a client there; false when there is none.
    pub(crate) fn admit(&self, address: IpAddr, now: Instant) -> bool {
        let mut buckets = self.0.lock();
        let own = OF_AN_ADDRESS.take(buckets.by_address.get(&address).copied(), now);
        let is_known = buckets.known_until.get(&address).is_some_and(|until| now < *until);
        let shared = if is_known { &mut buckets.known } else { &mut buckets.unknown };
        let (Some(own), Some(all)) = (own, IN_ALL.take(*shared, now)) else { return false };
        *shared = Some(all);
        insert_bounded(&mut buckets.by_address, address, own, now);
        true
    }

    /// The API server has confirmed a client there.
    pub(crate) fn confirm(&self, address: IpAddr, now: Instant) {
        insert_bounded(&mut self.0.lock().known_until, address, now + KNOWN_FOR, now);
    }
}

fn insert_bounded(
    times: &mut BTreeMap<IpAddr, Instant>,
    address: IpAddr,
    time: Instant,
    now: Instant,
) {
    if times.len() >= MAX_ADDRESSES {
        times.retain(|_, time| now < *time);
    }
    if times.len() >= MAX_ADDRESSES {
        times.pop_first();
    }
    times.insert(address, time);
}

impl BucketRate {
    /// When the bucket will be full after a token is taken; none when it is empty.
    fn take(self, full: Option<Instant>, now: Instant) -> Option<Instant> {
        let full = full.map_or(now, |full| full.max(now)) + self.interval;
        (full <= now + self.burst).then_some(full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_burst_passes_then_so_many_a_second_and_another_address_is_not_concerned() {
        let (throttle, begin) = (ReviewThrottle::default(), Instant::now());
        let admitted = |last: u8, at: Duration| {
            (0..1000).filter(|_| throttle.admit(address(last), begin + at)).count()
        };
        assert_eq!(admitted(1, Duration::ZERO), 40);
        assert_eq!(admitted(2, Duration::ZERO), 40);
        assert_eq!(admitted(3, Duration::ZERO), 20, "all together");
        assert_eq!(admitted(1, Duration::from_secs(1)), 10);
        assert_eq!(admitted(1, Duration::from_secs(60)), 40);
    }

    #[test]
    fn an_address_that_was_confirmed_within_the_hour_is_not_concerned_by_those_that_are_unknown() {
        let (throttle, begin) = (ReviewThrottle::default(), Instant::now());
        throttle.confirm(address(1), begin);
        let minute = Duration::from_secs(60);
        for (at, want) in [(59 * minute, true), (60 * minute, false)] {
            for last in 10..20 {
                let admitted = (0..1000).filter(|_| throttle.admit(address(last), begin + at));
                assert!(admitted.count() <= 40);
            }
            assert_eq!(throttle.admit(address(1), begin + at), want, "{at:?}");
        }
    }

    #[test]
    fn the_memory_for_addresses_is_bounded() {
        let (throttle, now) = (ReviewThrottle::default(), Instant::now());
        for number in 0..4_200_u32 {
            let at = now + Duration::from_millis(20) * number;
            throttle.admit(IpAddr::from(number.to_be_bytes()), at);
            throttle.confirm(IpAddr::from(number.to_be_bytes()), now);
        }
        let buckets = throttle.0.lock();
        assert!(buckets.by_address.len() <= MAX_ADDRESSES, "{}", buckets.by_address.len());
        assert!(buckets.known_until.len() <= MAX_ADDRESSES, "{}", buckets.known_until.len());
    }
}
