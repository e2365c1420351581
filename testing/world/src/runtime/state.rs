//! All the runtime knows.

use std::collections::BTreeMap;
use std::time::Duration;

use super::containers::Container;
use super::events::Events;
use super::images::Images;
use super::names::Names;
use super::sandboxes::Sandbox;
use crate::clock::WorldClock;
use crate::dice::Dice;
use crate::files::Files;
use crate::trace::Trace;

/// All the runtime knows, and the parts of the world it touches.
pub(super) struct State {
    pub(super) clock: WorldClock,
    pub(super) files: Files,
    pub(super) trace: Trace,
    pub(super) dice: Dice,
    pub(super) sandboxes: BTreeMap<String, Sandbox>,
    pub(super) containers: BTreeMap<String, Container>,
    pub(super) names: Names,
    pub(super) images: Images,
    pub(super) events: Events,
    /// When the runtime is back, while it is away.
    pub(super) away_until: Option<Duration>,
    made: u64,
}

impl State {
    pub(super) fn new(clock: WorldClock, files: Files, trace: Trace, dice: Dice) -> Self {
        Self {
            clock,
            files,
            trace,
            dice,
            sandboxes: BTreeMap::new(),
            containers: BTreeMap::new(),
            names: Names::default(),
            images: Images::default(),
            events: Events::default(),
            away_until: None,
            made: 0,
        }
    }

    /// Numbers the things this runtime has made.
    pub(super) fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// An id that nothing has had.
    pub(super) fn next_id(&mut self) -> String {
        hexadecimal(self.next_number())
    }

    pub(super) fn is_away(&self) -> bool {
        self.away_until.is_some_and(|back| self.clock.elapsed() < back)
    }
}

/// 64 hexadecimal digits that follow from a number but not in its order, as the digests and ids of
/// real runtimes are: lists sorted by id are not sorted by age.
pub(super) fn hexadecimal(number: u64) -> String {
    let mut dice = Dice::new(number);
    (0..4).map(|_| format!("{:016x}", dice.roll())).collect()
}
