//! Which connections have not shown yet that they may do anything here, and which of them go when there are too many.
//!
//! A client that has no rights can open connections and send half of a handshake or of a head. It is not refused, for it may be
//! behind the address of one that has rights, or be that one. Instead the oldest goes: a client that means it is through with its
//! handshake and its head long before as many others have come.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use oarsman_sync::Guarded;
use tokio_util::sync::CancellationToken;

/// Of one address. The API server may ask for many things at once, all from one address.
const MAX_PENDING_OF_AN_ADDRESS: usize = 128;
/// In all: with heads of 32 KiB and buffers for TLS this is some 40 MiB.
const MAX_PENDING: usize = 512;

/// All connections of one listener that may have to go.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingConnections(Arc<Guarded<PendingTable>>);

#[derive(Debug, Default)]
struct PendingTable {
    next: u64,
    connections: BTreeMap<u64, (IpAddr, CancellationToken)>,
    by_address: BTreeMap<IpAddr, BTreeSet<u64>>,
}

/// One connection: each of its requests has it among its extensions.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionHandle(Arc<TrackedConnection>);

#[derive(Debug)]
struct TrackedConnection {
    pending: PendingConnections,
    number: u64,
    address: IpAddr,
    evicted: CancellationToken,
}

impl PendingConnections {
    /// Counts a new connection; an older one may have to go for it.
    pub(crate) fn add(&self, address: IpAddr) -> ConnectionHandle {
        let mut table = self.0.lock();
        table.make_room(address);
        let (number, evicted) = (table.next, CancellationToken::new());
        table.next += 1;
        table.connections.insert(number, (address, evicted.clone()));
        table.by_address.entry(address).or_default().insert(number);
        ConnectionHandle(Arc::new(TrackedConnection {
            pending: self.clone(),
            number,
            address,
            evicted,
        }))
    }
}

impl PendingTable {
    fn make_room(&mut self, address: IpAddr) {
        let same = self.by_address.get(&address);
        let oldest = if same.is_some_and(|same| same.len() >= MAX_PENDING_OF_AN_ADDRESS) {
            same.and_then(|same| same.first().copied())
        } else if self.connections.len() >= MAX_PENDING {
            self.connections.keys().next().copied()
        } else {
            None
        };
        if let Some((address, evicted)) = oldest.and_then(|oldest| self.remove(oldest)) {
            tracing::debug!(client = %address, "connection closed: too many without a request");
            evicted.cancel();
        }
    }

    fn remove(&mut self, number: u64) -> Option<(IpAddr, CancellationToken)> {
        let (address, evicted) = self.connections.remove(&number)?;
        if let Some(same) = self.by_address.get_mut(&address) {
            same.remove(&number);
            if same.is_empty() {
                self.by_address.remove(&address);
            }
        }
        Some((address, evicted))
    }
}

impl ConnectionHandle {
    /// Where the client is.
    pub(crate) fn address(&self) -> IpAddr {
        self.0.address
    }

    /// The client may do something here: it does not have to go any more.
    pub(crate) fn keep(&self) {
        self.0.pending.0.lock().remove(self.0.number);
    }

    /// Waits until the connection has to go.
    pub(crate) async fn evicted(&self) {
        self.0.evicted.cancelled().await;
    }
}

impl Drop for TrackedConnection {
    fn drop(&mut self) {
        self.pending.0.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: usize) -> IpAddr {
        IpAddr::from([10, 0, 0, u8::try_from(last).unwrap()])
    }

    fn is_evicted(connection: &ConnectionHandle) -> bool {
        connection.0.evicted.is_cancelled()
    }

    #[test]
    fn the_oldest_of_an_address_goes_unless_it_may_stay() {
        let pending = PendingConnections::default();
        let (kept, other) = (pending.add(address(1)), pending.add(address(2)));
        kept.keep();
        let all: Vec<_> =
            (0..=MAX_PENDING_OF_AN_ADDRESS).map(|_| pending.add(address(1))).collect();
        let gone: Vec<_> = all.iter().map(is_evicted).collect();
        assert!(gone[0] && !gone[1..].contains(&true), "{gone:?}");
        assert!(!is_evicted(&kept) && !is_evicted(&other));
    }

    #[test]
    fn the_oldest_of_all_goes_and_those_that_ended_make_room() {
        let pending = PendingConnections::default();
        let from = |number: usize| pending.add(address(number / 100));
        let mut all: Vec<_> = (0..MAX_PENDING).map(from).collect();
        all.pop();
        let next = from(MAX_PENDING);
        assert!(!all.iter().any(is_evicted), "one has ended");
        let last = from(MAX_PENDING);
        assert!(is_evicted(&all[0]) && !all[1..].iter().any(is_evicted));
        drop((all, next, last));
        let table = pending.0.lock();
        assert!(table.connections.is_empty() && table.by_address.is_empty());
    }
}
