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

/// How a token bucket fills: a token every interval, and as many as fill the burst.
#[derive(Clone, Copy, Debug)]
struct BucketRate {
    interval: Duration,
    burst: Duration,
}

/// Buckets for all addresses and for each.
#[derive(Debug, Default)]
pub(crate) struct ReviewThrottle(Guarded<Buckets>);

/// A bucket is kept as the time at which it will be full.
#[derive(Debug, Default)]
struct Buckets {
    in_all: Option<Instant>,
    by_address: BTreeMap<IpAddr, Instant>,
}

impl ReviewThrottle {
    /// Takes a token for a question about a client there; false when there is none.
    pub(crate) fn admit(&self, address: IpAddr, now: Instant) -> bool {
        let mut buckets = self.0.lock();
        let own = buckets.by_address.get(&address).copied();
        let own = OF_AN_ADDRESS.take(own, now);
        let (Some(own), Some(all)) = (own, IN_ALL.take(buckets.in_all, now)) else { return false };
        buckets.in_all = Some(all);
        if buckets.by_address.len() >= MAX_ADDRESSES {
            buckets.by_address.retain(|_, full| now < *full);
        }
        if buckets.by_address.len() >= MAX_ADDRESSES {
            buckets.by_address.pop_first();
        }
        buckets.by_address.insert(address, own);
        true
    }
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

    #[test]
    fn a_burst_passes_then_so_many_a_second_and_another_address_is_not_concerned() {
        let (throttle, begin) = (ReviewThrottle::default(), Instant::now());
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let admitted = |last: u8, at: Duration| {
            (0..1000).filter(|_| throttle.admit(address(last), begin + at)).count()
        };
        assert_eq!(admitted(1, Duration::ZERO), 40);
        assert_eq!(admitted(2, Duration::ZERO), 40);
        assert_eq!(admitted(3, Duration::ZERO), 20, "all together");
        assert_eq!(admitted(1, Duration::from_secs(1)), 10);
        assert_eq!(admitted(1, Duration::from_secs(60)), 40);
    }
}
