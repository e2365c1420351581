//! A map that forgets what has not been used for longest.

use std::collections::BTreeMap;

/// At most so many things, by key.
#[derive(Clone, Debug)]
pub(super) struct LruMap<K, V> {
    most: usize,
    uses: u64,
    things: BTreeMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
}

impl<K: Ord + Clone, V> LruMap<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, uses: 0, things: BTreeMap::new(), order: BTreeMap::new() }
    }

    /// What is there of that key, made when there is nothing. Should that be one too many, the one that was not used for longest
    /// goes.
    pub(super) fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        if let Some((used, _)) = self.things.get(&key) {
            self.order.remove(used);
        } else if self.things.len() >= self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.things.remove(&oldest);
        }
        self.order.insert(self.uses, key.clone());
        let thing = self.things.entry(key).or_insert_with(|| (0, make()));
        thing.0 = self.uses;
        &mut thing.1
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.order.len(), self.things.len());
        self.things.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten_first() {
        let mut map = LruMap::new(2);
        *map.entry("a", || 0) += 1;
        *map.entry("b", || 0) += 1;
        *map.entry("a", || 0) += 1;
        *map.entry("c", || 0) += 1;
        assert_eq!(map.len(), 2);
        assert_eq!(*map.entry("a", || 0), 2, "it was used later than b");
        assert_eq!(*map.entry("b", || 0), 0, "it is new");
        assert_eq!(*map.entry("c", || 0), 0, "b took its place");
    }
}
