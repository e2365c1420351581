//! Images that pods are about to use, so that garbage collection removes none between the look at it and the creation of its container.

use std::collections::{BTreeMap, BTreeSet};

use oarsman_sync::{Guarded, ordered_watch};

/// Uses and removals of images, by their ids.
#[derive(Debug)]
pub(crate) struct ImageUses {
    state: Guarded<UseState>,
    /// Counts the removals that have ended.
    removals: ordered_watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct UseState {
    leased: BTreeMap<String, usize>,
    /// Those that were leased since containers were last listed: the list does not show their containers.
    since_list: BTreeSet<String>,
    removing: BTreeSet<String>,
}

/// An image that is about to be used, until this is dropped.
#[derive(Debug)]
pub(crate) struct ImageLease<'u> {
    uses: &'u ImageUses,
    id: String,
}

/// An image that is being removed, until this is dropped.
#[derive(Debug)]
pub(crate) struct ImageRemoval<'u> {
    uses: &'u ImageUses,
    id: String,
}

/// The image is being removed.
#[derive(Debug)]
pub(crate) struct BeingRemoved(ordered_watch::Receiver<u64>);

impl BeingRemoved {
    /// Waits until a removal has ended.
    pub(crate) async fn ended(mut self) {
        self.0.changed().await.ok();
    }
}

impl Default for ImageUses {
    fn default() -> Self {
        Self { state: Guarded::default(), removals: ordered_watch::Sender::new(0) }
    }
}

impl ImageUses {
    /// Keeps an image from being removed.
    ///
    /// # Errors
    /// When it is being removed already.
    pub(crate) fn lease(&self, id: &str) -> Result<ImageLease<'_>, BeingRemoved> {
        let removals = self.removals.subscribe();
        let mut state = self.state.lock();
        if state.removing.contains(id) {
            return Err(BeingRemoved(removals));
        }
        *state.leased.entry(id.to_owned()).or_default() += 1;
        state.since_list.insert(id.to_owned());
        Ok(ImageLease { uses: self, id: id.to_owned() })
    }

    /// Containers are listed from now on: uses that end later may not be in the list.
    pub(crate) fn begin_list(&self) {
        let mut state = self.state.lock();
        let leased: BTreeSet<String> = state.leased.keys().cloned().collect();
        state.since_list = leased;
    }

    /// Begins the removal of an image that no container in the list uses; none if one may have come since.
    pub(crate) fn begin_removal(&self, id: &str) -> Option<ImageRemoval<'_>> {
        let mut state = self.state.lock();
        if state.leased.contains_key(id) || state.since_list.contains(id) {
            return None;
        }
        state.removing.insert(id.to_owned());
        Some(ImageRemoval { uses: self, id: id.to_owned() })
    }
}

impl Drop for ImageLease<'_> {
    fn drop(&mut self) {
        let mut state = self.uses.state.lock();
        if let Some(count) = state.leased.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                state.leased.remove(&self.id);
            }
        }
    }
}

impl Drop for ImageRemoval<'_> {
    fn drop(&mut self) {
        self.uses.state.lock().removing.remove(&self.id);
        self.uses.removals.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_was_used_since_containers_were_listed_is_not_removed() {
        let uses = ImageUses::default();
        let lease = uses.lease("a").unwrap();
        uses.begin_list();
        assert!(uses.begin_removal("a").is_none(), "it is in use");
        drop(lease);
        assert!(uses.begin_removal("a").is_none(), "its container may not be in the list");
        assert!(uses.begin_removal("b").is_some());
        uses.begin_list();
        assert!(uses.begin_removal("a").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_image_that_is_being_removed_is_waited_for() {
        let uses = ImageUses::default();
        let removal = uses.begin_removal("a").unwrap();
        let refused = uses.lease("a").unwrap_err();
        assert!(uses.lease("b").is_ok());
        drop(removal);
        refused.ended().await;
        let lease = uses.lease("a").unwrap();
        let another = uses.lease("a").unwrap();
        drop(lease);
        uses.begin_list();
        drop(another);
        assert!(uses.begin_removal("a").is_none());
    }
}
