//! When the sync loop last took a turn, which the health endpoints answer from.

use std::sync::Arc;

use oarsman_core::time::Mono;
use oarsman_sync::Guarded;

/// The last turn of the sync loop; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct SyncLoopMonitor(Arc<Guarded<Option<Mono>>>);

impl SyncLoopMonitor {
    /// When the loop last began a turn; none before the first.
    pub fn last_entry(&self) -> Option<Mono> {
        *self.0.lock()
    }

    pub(crate) fn record(&self, now: Mono) {
        *self.0.lock() = Some(now);
    }
}
