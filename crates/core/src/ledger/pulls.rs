//! Who may pull an image now: first come, first served, and only so many at one time.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;

use crate::ids::PodUid;

/// Stands for one wish to pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// The answer to a wish to pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Go ahead, and give the ticket back when done.
    Now(Ticket),
    /// Wait until the ticket is called.
    Later(Ticket),
}

/// The slots, and the line in front of them.
#[derive(Clone, Debug)]
pub(super) struct Pulls {
    slots: Option<NonZeroUsize>,
    next: u64,
    pulling: BTreeMap<Ticket, PodUid>,
    waiting: VecDeque<(Ticket, PodUid)>,
}

impl Pulls {
    pub(super) fn new(slots: Option<NonZeroUsize>) -> Self {
        Self { slots, next: 0, pulling: BTreeMap::new(), waiting: VecDeque::new() }
    }

    pub(super) fn ask(&mut self, uid: &PodUid) -> Turn {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.push_back((ticket, uid.clone()));
        match self.call().contains(&ticket) {
            true => Turn::Now(ticket),
            false => Turn::Later(ticket),
        }
    }

    /// Ends a pull or a wait; a ticket that is neither changes nothing.
    pub(super) fn end(&mut self, ticket: Ticket) -> Vec<Ticket> {
        self.pulling.remove(&ticket);
        self.waiting.retain(|(waiting, _)| *waiting != ticket);
        self.call()
    }

    /// Ends all pulls and waits of a pod.
    pub(super) fn drop_pod(&mut self, uid: &PodUid) -> Vec<Ticket> {
        self.pulling.retain(|_, pulling| pulling != uid);
        self.waiting.retain(|(_, waiting)| waiting != uid);
        self.call()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pulling.is_empty() && self.waiting.is_empty()
    }

    /// Fills free slots from the head of the line.
    fn call(&mut self) -> Vec<Ticket> {
        let free =
            self.slots.map_or(usize::MAX, |slots| slots.get().saturating_sub(self.pulling.len()));
        let called = self.waiting.drain(..free.min(self.waiting.len()));
        let called: Vec<(Ticket, PodUid)> = called.collect();
        let tickets = called.iter().map(|(ticket, _)| *ticket).collect();
        self.pulling.extend(called);
        tickets
    }
}
