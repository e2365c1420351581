//! Telling of changes. Nobody is told twice of what they have not fetched yet, so that there is never more to keep than there are
//! things that change.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use futures::StreamExt;
use futures::stream::unfold;
use oarsman_core::references::Change;
use oarsman_sync::Guarded;

use crate::ObjectChanges;

/// Who is told; clones tell the same ones.
#[derive(Clone, Default)]
pub(super) struct News(Arc<Guarded<Vec<Weak<Untold>>>>);

/// Changes that one listener has not fetched yet.
type Untold = Guarded<BTreeSet<Change>>;

impl News {
    /// Tells everybody who listens.
    pub(super) fn tell(&self, change: &Change) {
        self.0.lock().retain(|listener| match listener.upgrade() {
            Some(untold) => {
                untold.update(|changes| changes.insert(change.clone()));
                true
            }
            None => false,
        });
    }

    /// What is told from now on, without end.
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
