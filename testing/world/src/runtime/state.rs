//! The state of the fake runtime.

use std::collections::BTreeMap;
use std::time::Duration;

use super::containers::FakeContainer;
use super::events::EventHub;
use super::images::ImageStore;
use super::names::NameReservations;
use super::sandboxes::FakeSandbox;
use crate::clock::WorldClock;
use crate::files::FakeFiles;
use crate::rng::Rng;
use crate::trace::Trace;

/// The state of the runtime, and the parts of the world it uses.
pub(super) struct FakeRuntimeState {
    pub(super) clock: WorldClock,
    pub(super) files: FakeFiles,
    pub(super) trace: Trace,
    pub(super) rng: Rng,
    pub(super) sandboxes: BTreeMap<String, FakeSandbox>,
    pub(super) containers: BTreeMap<String, FakeContainer>,
    pub(super) names: NameReservations,
    pub(super) images: ImageStore,
    pub(super) events: EventHub,
    /// When the outage ends, if there is one.
    pub(super) away_until: Option<Duration>,
    /// When pods have a network again, if they have none.
    pub(super) no_network_until: Option<Duration>,
    made: u64,
}

impl FakeRuntimeState {
    pub(super) fn new(clock: WorldClock, files: FakeFiles, trace: Trace, rng: Rng) -> Self {
        Self {
            clock,
            files,
            trace,
            rng,
            sandboxes: BTreeMap::new(),
            containers: BTreeMap::new(),
            names: NameReservations::default(),
            images: ImageStore::default(),
            events: EventHub::default(),
            away_until: None,
            no_network_until: None,
            made: 0,
        }
    }

    /// Counts the objects of this runtime.
    pub(super) fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// A new id.
    pub(super) fn next_id(&mut self) -> String {
        hexadecimal(self.next_number())
    }

    pub(super) fn is_away(&self) -> bool {
        self.away_until.is_some_and(|back| self.clock.elapsed() < back)
    }

    pub(super) fn has_network(&self) -> bool {
        self.no_network_until.is_none_or(|back| self.clock.elapsed() >= back)
    }
}

/// 64 hexadecimal digits that follow from a number but not in its order, as the digests and ids of real runtimes are: lists sorted by id are not
/// sorted by age.
pub(super) fn hexadecimal(number: u64) -> String {
    let mut rng = Rng::new(number);
    (0..4).map(|_| format!("{:016x}", rng.next_u64())).collect()
}
