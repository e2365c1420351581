//! A cache of reviews and decisions that expire.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_sync::Guarded;
use tokio::time::Instant;

/// The most entries: a client that invents tokens must not fill the memory.
const MAX_ENTRIES: usize = 4096;

/// Values by key, each with its time of expiry.
#[derive(Debug)]
pub(crate) struct TtlCache<K, V> {
    entries: Guarded<BTreeMap<K, (Instant, V)>>,
}

impl<K: Ord + Clone, V: Clone> TtlCache<K, V> {
    pub(crate) fn new() -> Self {
        Self { entries: Guarded::default() }
    }

    /// The value, unless it has expired.
    pub(crate) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let kept = self.entries.lock();
        kept.get(key).filter(|(until, _)| now < *until).map(|(_, value)| value.clone())
    }

    /// Stores a value for the given time.
    pub(crate) fn insert(&self, key: K, value: V, now: Instant, time: Duration) {
        let mut kept = self.entries.lock();
        if kept.len() >= MAX_ENTRIES {
            kept.retain(|_, (until, _)| now < *until);
        }
        if kept.len() >= MAX_ENTRIES {
            kept.pop_first();
        }
        kept.insert(key, (now + time, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_expire_and_their_number_is_limited() {
        let cache = TtlCache::new();
        let begin = Instant::now();
        cache.insert(1, "a", begin, Duration::from_secs(10));
        assert_eq!(cache.get(&1, begin + Duration::from_secs(9)), Some("a"));
        assert_eq!(cache.get(&1, begin + Duration::from_secs(10)), None);
        for key in 0..2 * MAX_ENTRIES {
            cache.insert(key, "b", begin, Duration::from_secs(60));
        }
        assert_eq!(cache.entries.lock().len(), MAX_ENTRIES);
    }
}
