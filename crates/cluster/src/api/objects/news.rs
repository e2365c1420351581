//! Telling of changes. Nobody is told twice of what they have not fetched yet, so that there is never more to keep than there are
//! things that change.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::StreamExt;
use futures::stream::unfold;
use oarsman_core::references::Change;
use tokio::sync::Notify;

use crate::ObjectChanges;

/// Who is told; clones tell the same ones.
#[derive(Clone, Default)]
pub(super) struct News(Arc<Mutex<Vec<Weak<Letterbox>>>>);

#[derive(Default)]
struct Letterbox {
    untold: Mutex<BTreeSet<Change>>,
    filled: Notify,
}

impl News {
    /// Tells everybody who listens.
    pub(super) fn tell(&self, change: &Change) {
        lock(&self.0).retain(|listener| match listener.upgrade() {
            Some(letterbox) => {
                lock(&letterbox.untold).insert(change.clone());
                letterbox.filled.notify_one();
                true
            }
            None => false,
        });
    }

    /// What is told from now on, without end.
    pub(super) fn listen(&self) -> ObjectChanges {
        let letterbox = Arc::new(Letterbox::default());
        lock(&self.0).push(Arc::downgrade(&letterbox));
        unfold(letterbox, |letterbox| async {
            let change = letterbox.next().await;
            Some((change, letterbox))
        })
        .boxed()
    }
}

impl Letterbox {
    async fn next(&self) -> Change {
        loop {
            // What is put there between the look and the wait has left a permit.
            if let Some(change) = lock(&self.untold).pop_first() {
                return change;
            }
            self.filled.notified().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
