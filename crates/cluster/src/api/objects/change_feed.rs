//! The feed of changes. A change that a subscriber has not fetched yet is stored once, so that memory is bounded by the number of
//! objects.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use futures::StreamExt;
use futures::stream::unfold;
use oarsman_core::references::ObjectChange;
use oarsman_sync::Guarded;

use crate::ObjectChanges;

/// The subscribers; clones share them.
#[derive(Clone, Default)]
pub(super) struct ChangeFeed(Arc<Guarded<Vec<Weak<PendingChanges>>>>);

/// Changes that one subscriber has not fetched yet.
type PendingChanges = Guarded<BTreeSet<ObjectChange>>;

impl ChangeFeed {
    /// Sends a change to all subscribers.
    pub(super) fn publish(&self, change: &ObjectChange) {
        self.0.lock().retain(|listener| match listener.upgrade() {
            Some(pending) => {
                pending.update(|changes| changes.insert(change.clone()));
                true
            }
            None => false,
        });
    }

    /// Changes from now on; the stream does not end.
    pub(super) fn subscribe(&self) -> ObjectChanges {
        let pending = Arc::new(PendingChanges::default());
        self.0.lock().push(Arc::downgrade(&pending));
        unfold(pending, |pending| async {
            let change = pending.take_when(BTreeSet::pop_first).await;
            Some((change, pending))
        })
        .boxed()
    }
}
