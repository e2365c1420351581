//! How many clients are served at once, of a pod and in all, so that no pod or namespace takes the places of all others.

use std::collections::BTreeMap;
use std::sync::Arc;

use oarsman_core::ids::FullName;
use oarsman_sync::Guarded;
use tokio_util::sync::CancellationToken;

/// Places for clients of pods.
#[derive(Debug)]
pub(crate) struct PodQuota {
    max: usize,
    max_of_a_pod: usize,
    clients: Guarded<QuotaClients>,
}

/// Those that have a place, by the order in which they came.
#[derive(Debug, Default)]
struct QuotaClients {
    next: u64,
    by_number: BTreeMap<u64, (FullName, CancellationToken)>,
}

/// A place, until it is dropped or taken back.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    quota: Arc<PodQuota>,
    pod: FullName,
    number: u64,
    revoked: CancellationToken,
}

impl PodQuota {
    /// So many places in all, and so many for clients of one pod.
    pub(crate) fn new(max: usize, max_of_a_pod: usize) -> Arc<Self> {
        Arc::new(Self { max, max_of_a_pod, clients: Guarded::default() })
    }

    /// None when the pod or its namespace has too many clients already. Another namespace that has the most of all places gives one
    /// back.
    pub(crate) fn admit(self: &Arc<Self>, pod: &FullName) -> Option<QuotaPermit> {
        let (number, revoked) = self.clients.lock().admit(pod, self.max, self.max_of_a_pod)?;
        Some(QuotaPermit { quota: Arc::clone(self), pod: pod.clone(), number, revoked })
    }
}

impl QuotaClients {
    fn admit(
        &mut self,
        pod: &FullName,
        max: usize,
        max_of_a_pod: usize,
    ) -> Option<(u64, CancellationToken)> {
        let of_pod = self.by_number.values().filter(|(other, _)| other == pod).count();
        if of_pod >= max_of_a_pod {
            return None;
        }
        if self.by_number.len() >= max {
            let oldest = self.oldest_of_fullest(&pod.namespace)?;
            let (_, revoked) = self.by_number.remove(&oldest)?;
            revoked.cancel();
        }
        let (number, revoked) = (self.next, CancellationToken::new());
        self.next += 1;
        self.by_number.insert(number, (pod.clone(), revoked.clone()));
        Some((number, revoked))
    }

    /// The oldest client of the namespace with the most, unless this one has as many.
    fn oldest_of_fullest(&self, namespace: &str) -> Option<u64> {
        let mut namespaces = BTreeMap::<&str, (usize, u64)>::new();
        for (number, (pod, _)) in &self.by_number {
            namespaces.entry(&pod.namespace).or_insert((0, *number)).0 += 1;
        }
        let own = namespaces.get(namespace).map_or(0, |(count, _)| *count);
        let (count, oldest) = namespaces.into_values().max_by_key(|(count, _)| *count)?;
        (count > own).then_some(oldest)
    }
}

impl QuotaPermit {
    pub(crate) fn pod(&self) -> &FullName {
        &self.pod
    }

    /// Waits until the place is given to another.
    pub(crate) async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.quota.clients.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 256;
    const MAX_OF_A_POD: usize = 32;

    fn pod_of(namespace: &str, name: usize) -> FullName {
        FullName { name: name.to_string(), namespace: namespace.to_owned() }
    }

    #[test]
    fn a_namespace_that_has_all_places_gives_the_oldest_back_to_others() {
        let quota = PodQuota::new(MAX, MAX_OF_A_POD);
        let of = |namespace: &str, number: usize| quota.admit(&pod_of(namespace, number / 32));
        let greedy: Vec<_> = (0..MAX).map(|number| of("a", number).unwrap()).collect();
        assert!(of("a", 1_000_000).is_none(), "they are its own");
        let others: Vec<_> = (0..64).map(|number| of("b", number).unwrap()).collect();
        let is_revoked = |it: &QuotaPermit| it.revoked.is_cancelled();
        let gone: Vec<_> = greedy.iter().map(is_revoked).collect();
        assert!(gone[..64].iter().all(|gone| *gone) && !gone[64..].contains(&true), "{gone:?}");
        assert!(!others.iter().any(is_revoked));
        drop((greedy, others));
        assert!(quota.clients.lock().by_number.is_empty());
    }

    #[test]
    fn clients_are_limited_by_pod_and_in_all_and_make_room_when_they_leave() {
        let quota = PodQuota::new(MAX, MAX_OF_A_POD);
        let admit = |name| quota.admit(&pod_of("default", name));
        let mut permits: Vec<_> = (0..MAX_OF_A_POD).map(|_| admit(0).unwrap()).collect();
        assert!(admit(0).is_none());
        let rest = MAX - MAX_OF_A_POD;
        permits.extend((1..=rest).map(|name| admit(name).unwrap()));
        assert!(admit(rest + 1).is_none());
        permits.remove(0);
        assert!(admit(0).is_some());
        permits.clear();
        assert!(quota.clients.lock().by_number.is_empty());
    }
}
