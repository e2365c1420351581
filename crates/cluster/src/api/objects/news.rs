//! The feed of changes. A change that a subscriber has not fetched yet is stored once, so that memory is bounded by the number of
//! objects.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use futures::StreamExt;
use futures::stream::unfold;
use oarsman_core::references::Change;
use oarsman_sync::Guarded;

use crate::ObjectChanges;

/// The subscribers; clones share them.
#[derive(Clone, Default)]
pub(super) struct News(Arc<Guarded<Vec<Weak<Untold>>>>);

/// Changes that one subscriber has not fetched yet.
type Untold = Guarded<BTreeSet<Change>>;

impl News {
    /// Sends a change to all subscribers.
    pub(super) fn tell(&self, change: &Change) {
        self.0.lock().retain(|listener| match listener.upgrade() {
            Some(untold) => {
                untold.update(|changes| changes.insert(change.clone()));
                true
            }
            None => false,
        });
    }

    /// Changes from now on; the stream does not end.
    pub(super) fn listen(&self) -> ObjectChanges {
        let untold = Arc::new(Untold::default());
        self.0.lock().push(Arc::downgrade(&untold));
        unfold(untold, |untold| async {
            let change = untold.take_when(BTreeSet::pop_first).await;
            Some((change, untold))
        })
        .boxed()
    }
}
