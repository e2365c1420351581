//! Which connections of a listener go when there are too many.
//!
//! A client that has no rights can open connections and send half of a handshake or of a head. It is not refused, for it may be
//! behind the address of one that has rights, or be that one. Instead the oldest of the address with the most goes: a client that means
//! it is through with its handshake and its head long before as many others have come. A client that has rights is counted by its
//! user instead, and the connection goes on which it has asked for nothing for the longest time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use oarsman_sync::Guarded;
use tokio_util::sync::CancellationToken;

/// Of one address. The API server may ask for many things at once, all from one address.
const MAX_PENDING_OF_AN_ADDRESS: usize = 128;
/// In all. With a chain of certificates of 16 KiB, a head of 32 KiB and buffers for TLS, those of HTTP/1.1 have some 40 MiB together. One of HTTP/2 may
/// have 256 KiB of bodies, and several heads while its requests are reviewed; the reviews are limited (`review_throttle`), and with them these heads.
const MAX_PENDING: usize = 512;
/// Of one user. All that is asked through the API server comes from one.
const MAX_KEPT_OF_A_USER: usize = 512;
/// Of all kinds together. The listener takes some more, so that those that have to go do not keep others from being accepted.
pub(crate) const MAX_CONNECTIONS: usize = 1024;

/// All connections of one listener.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionTable(Arc<Guarded<TableState>>);

/// What connections are counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    /// Until the client is authenticated.
    Address(IpAddr),
    User(String),
}

#[derive(Debug, Default)]
struct TableState {
    next: u64,
    connections: BTreeMap<u64, TableEntry>,
    /// The numbers of each peer's connections, by the order of their last requests.
    peers: BTreeMap<Peer, BTreeSet<(u64, u64)>>,
    /// Those that are counted by address.
    pending: usize,
}

#[derive(Debug)]
struct TableEntry {
    peer: Peer,
    last_use: u64,
    evicted: CancellationToken,
}

/// One connection: each of its requests has it among its extensions.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionHandle(Arc<TrackedConnection>);

#[derive(Debug)]
struct TrackedConnection {
    table: ConnectionTable,
    number: u64,
    address: IpAddr,
    evicted: CancellationToken,
}

impl ConnectionTable {
    /// Counts a new connection; an older one may have to go for it.
    pub(crate) fn add(&self, address: IpAddr) -> ConnectionHandle {
        let address = network(address);
        let (number, evicted) = self.0.lock().add(address);
        ConnectionHandle(Arc::new(TrackedConnection {
            table: self.clone(),
            number,
            address,
            evicted,
        }))
    }
}

/// A host with IPv6 has a whole network of addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl TableState {
    fn add(&mut self, address: IpAddr) -> (u64, CancellationToken) {
        let peer = Peer::Address(address);
        if self.count(&peer) >= MAX_PENDING_OF_AN_ADDRESS {
            self.evict_first(&peer);
        } else if self.pending >= MAX_PENDING {
            self.evict_of_fullest(|peer| matches!(peer, Peer::Address(_)));
        } else if self.connections.len() >= MAX_CONNECTIONS {
            self.evict_of_fullest(|peer| matches!(peer, Peer::User(_)));
        }
        let (number, evicted) = (self.next, CancellationToken::new());
        self.insert(number, peer, evicted.clone());
        (number, evicted)
    }

    /// Counts a connection by its user from now on, as just used.
    fn keep(&mut self, number: u64, user: &str) {
        let Some(entry) = self.remove(number) else { return };
        let peer = Peer::User(user.to_owned());
        if self.count(&peer) >= MAX_KEPT_OF_A_USER {
            self.evict_first(&peer);
        }
        self.insert(number, peer, entry.evicted);
    }

    fn insert(&mut self, number: u64, peer: Peer, evicted: CancellationToken) {
        let last_use = self.next;
        self.next += 1;
        self.pending += usize::from(matches!(peer, Peer::Address(_)));
        self.peers.entry(peer.clone()).or_default().insert((last_use, number));
        self.connections.insert(number, TableEntry { peer, last_use, evicted });
    }

    fn remove(&mut self, number: u64) -> Option<TableEntry> {
        let entry = self.connections.remove(&number)?;
        self.pending -= usize::from(matches!(entry.peer, Peer::Address(_)));
        if let Some(same) = self.peers.get_mut(&entry.peer) {
            same.remove(&(entry.last_use, number));
            if same.is_empty() {
                self.peers.remove(&entry.peer);
            }
        }
        Some(entry)
    }

    fn count(&self, peer: &Peer) -> usize {
        self.peers.get(peer).map_or(0, BTreeSet::len)
    }

    fn evict_of_fullest(&mut self, is_meant: impl Fn(&Peer) -> bool) {
        let meant = self.peers.iter().filter(|(peer, _)| is_meant(peer));
        // Of several the one with the oldest connection.
        let fullest = meant.max_by_key(|(_, same)| (same.len(), std::cmp::Reverse(same.first())));
        if let Some(peer) = fullest.map(|(peer, _)| peer.clone()) {
            self.evict_first(&peer);
        }
    }

    fn evict_first(&mut self, peer: &Peer) {
        let first = self.peers.get(peer).and_then(BTreeSet::first).map(|(_, number)| *number);
        if let Some(entry) = first.and_then(|first| self.remove(first)) {
            tracing::debug!(client = ?entry.peer, "connection closed: there are too many");
            entry.evicted.cancel();
        }
    }
}

impl ConnectionHandle {
    /// Where the client is: its address, or its network.
    pub(crate) fn address(&self) -> IpAddr {
        self.0.address
    }

    /// The client is this user and may do something here: it does not have to go for clients that are unknown.
    pub(crate) fn keep(&self, user: &str) {
        self.0.table.0.lock().keep(self.0.number, user);
    }

    /// The connection is upgraded: it sends no more requests, and the number of such connections has a limit of its own.
    pub(crate) fn leave_table(&self) {
        self.0.table.0.lock().remove(self.0.number);
    }

    /// Waits until the connection has to go.
    pub(crate) async fn evicted(&self) {
        self.0.evicted.cancelled().await;
    }
}

impl Drop for TrackedConnection {
    fn drop(&mut self) {
        self.table.0.lock().remove(self.number);
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

    fn evicted(connections: &[ConnectionHandle]) -> usize {
        connections.iter().filter(|it| is_evicted(it)).count()
    }

    #[test]
    fn the_oldest_of_an_address_goes_unless_it_may_stay() {
        let table = ConnectionTable::default();
        let (kept, other) = (table.add(address(1)), table.add(address(2)));
        kept.keep("api");
        let all: Vec<_> = (0..=MAX_PENDING_OF_AN_ADDRESS).map(|_| table.add(address(1))).collect();
        let gone: Vec<_> = all.iter().map(is_evicted).collect();
        assert!(gone[0] && !gone[1..].contains(&true), "{gone:?}");
        assert!(!is_evicted(&kept) && !is_evicted(&other));
    }

    #[test]
    fn the_oldest_of_the_address_with_the_most_goes_and_those_that_ended_make_room() {
        let table = ConnectionTable::default();
        let waiting = table.add(address(9));
        let from = |number: usize| table.add(address(number / 128));
        let mut all: Vec<_> = (0..MAX_PENDING - 1).map(from).collect();
        all.pop();
        let next = table.add(address(8));
        assert_eq!(evicted(&all), 0, "one has ended");
        let more: Vec<_> = (0..256).map(|_| table.add(address(7))).collect();
        assert!(!is_evicted(&waiting) && !is_evicted(&next), "they have few");
        assert!(is_evicted(&all[0]) && evicted(&all) + evicted(&more) >= 256);
        drop((all, next, more, waiting));
        let state = table.0.lock();
        assert!(state.connections.is_empty() && state.peers.is_empty() && state.pending == 0);
    }

    #[test]
    fn a_host_with_ipv6_is_one_address() {
        let table = ConnectionTable::default();
        let from = |host: usize| table.add(format!("2001:db8::{host:x}").parse().unwrap());
        let all: Vec<_> = (0..=MAX_PENDING_OF_AN_ADDRESS).map(from).collect();
        assert_eq!(evicted(&all), 1);
        assert_ne!(from(1).address(), table.add("2001:db8:0:1::1".parse().unwrap()).address());
        assert_eq!(table.add("::ffff:10.0.0.1".parse().unwrap()).address(), address(1));
    }

    #[test]
    fn what_a_user_has_not_used_for_the_longest_time_goes_when_it_has_too_many() {
        let table = ConnectionTable::default();
        let kept = |user: &str| {
            let connection = table.add(address(1));
            connection.keep(user);
            connection
        };
        let api = kept("api");
        let all: Vec<_> = (0..MAX_KEPT_OF_A_USER).map(|_| kept("monitor")).collect();
        all[0].keep("monitor");
        let last = kept("monitor");
        assert!(is_evicted(&all[1]) && evicted(&all) == 1, "the first was used since");
        assert!(!is_evicted(&api) && !is_evicted(&last));
    }

    #[test]
    fn an_upgraded_connection_neither_counts_nor_goes() {
        let table = ConnectionTable::default();
        let upgraded = table.add(address(1));
        upgraded.keep("api");
        upgraded.leave_table();
        let all: Vec<_> = (0..MAX_KEPT_OF_A_USER)
            .map(|_| table.add(address(1)))
            .inspect(|connection| connection.keep("api"))
            .collect();
        assert_eq!(evicted(&all), 0);
        assert!(!is_evicted(&upgraded));
    }

    #[test]
    fn when_there_are_too_many_in_all_one_of_the_user_with_the_most_goes() {
        let table = ConnectionTable::default();
        let from = |number: usize, user: &str| {
            let connection = table.add(address(number % 200));
            connection.keep(user);
            connection
        };
        let api: Vec<_> = (0..200).map(|number| from(number, "api")).collect();
        let users =
            ["a", "b"].map(|user| (0..412).map(|number| from(number, user)).collect::<Vec<_>>());
        let more: Vec<_> = (0..100).map(|number| table.add(address(number))).collect();
        assert_eq!(evicted(&users[0]) + evicted(&users[1]), 100);
        assert_eq!(evicted(&api) + evicted(&more), 0);
    }
}
