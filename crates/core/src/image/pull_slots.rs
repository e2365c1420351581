//! Which pulls may be under way at once, so that no namespace keeps another from pulling.
//!
//! A registry of a tenant can let a pull trickle for hours. So of those that wait, the namespace with the fewest pulls under way goes
//! first, and when all slots are taken, one pull more may begin of a namespace that has none under way.

use std::collections::BTreeMap;

/// A pull that waits or is under way, in the order in which they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PullTicket(u64);

/// The pulls of a node.
#[derive(Clone, Debug)]
pub struct PullSlots {
    slots: usize,
    next: u64,
    /// The namespaces of pulls that wait, by ticket.
    waiting: BTreeMap<PullTicket, String>,
    running: BTreeMap<PullTicket, String>,
}

impl PullSlots {
    /// At least one; the operator says how many.
    pub fn new(slots: usize) -> Self {
        let (waiting, running) = (BTreeMap::new(), BTreeMap::new());
        Self { slots: slots.max(1), next: 0, waiting, running }
    }

    /// A pull for a pod of that namespace begins to wait.
    pub fn request(&mut self, namespace: &str) -> PullTicket {
        let ticket = PullTicket(self.next);
        self.next += 1;
        self.waiting.insert(ticket, namespace.to_owned());
        ticket
    }

    /// The next pull that begins now, if one may.
    pub fn grant(&mut self) -> Option<PullTicket> {
        let of_namespace = |namespace: &String| {
            self.running.values().filter(|running| *running == namespace).count()
        };
        let counted = self.waiting.iter().map(|(ticket, name)| (of_namespace(name), *ticket));
        let (count, ticket) = counted.min()?;
        let is_free = self.running.len() < self.slots;
        if !is_free && !self.may_exceed(count) {
            return None;
        }
        self.running.insert(ticket, self.waiting.remove(&ticket)?);
        Some(ticket)
    }

    /// A pull is over, or is wanted no longer.
    pub fn end(&mut self, ticket: PullTicket) {
        self.waiting.remove(&ticket);
        self.running.remove(&ticket);
    }

    /// Whether one pull more may begin of a namespace with so many under way. Pulls that shall be one after the other are.
    fn may_exceed(&self, count: usize) -> bool {
        count == 0 && self.slots > 1 && self.running.len() == self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests one pull for each name, and says which begin, by their numbers.
    fn granted(slots: &mut PullSlots, namespaces: &[&str]) -> Vec<u64> {
        for namespace in namespaces {
            slots.request(namespace);
        }
        std::iter::from_fn(|| slots.grant()).map(|ticket| ticket.0).collect()
    }

    #[test]
    fn one_namespace_has_all_slots_and_no_more() {
        let mut slots = PullSlots::new(3);
        assert_eq!(granted(&mut slots, &["a"; 5]), [0, 1, 2]);
        slots.end(PullTicket(1));
        assert_eq!(granted(&mut slots, &[]), [3]);
        slots.end(PullTicket(4));
        slots.end(PullTicket(0));
        assert_eq!(granted(&mut slots, &[]), [] as [u64; 0], "it was wanted no longer");
    }

    /// Row C20: five pulls that never end held up every other pod of the node.
    #[test]
    fn a_namespace_with_no_pull_under_way_is_not_held_up_by_one_that_has_them_all() {
        let mut slots = PullSlots::new(5);
        assert_eq!(granted(&mut slots, &["hostile"; 50]).len(), 5);
        assert_eq!(granted(&mut slots, &["b", "b"]), [50], "one beyond the slots");
        slots.end(PullTicket(50));
        assert_eq!(granted(&mut slots, &["c"]), [51], "again and again");
        slots.end(PullTicket(51));
        assert_eq!(granted(&mut slots, &[]), [52]);
    }

    #[test]
    fn the_namespace_with_the_fewest_pulls_goes_first_and_else_the_first_that_asked() {
        let mut slots = PullSlots::new(3);
        assert_eq!(granted(&mut slots, &["a", "a", "a", "b", "c", "b"]), [0, 3, 4]);
        slots.end(PullTicket(3));
        assert_eq!(granted(&mut slots, &[]), [5], "b has none under way now");
        slots.end(PullTicket(0));
        assert_eq!(granted(&mut slots, &[]), [1]);
    }

    #[test]
    fn pulls_that_shall_be_one_after_the_other_are() {
        let mut slots = PullSlots::new(1);
        assert_eq!(granted(&mut slots, &["a", "b", "a"]), [0]);
        slots.end(PullTicket(0));
        assert_eq!(granted(&mut slots, &[]), [1]);
    }
}
