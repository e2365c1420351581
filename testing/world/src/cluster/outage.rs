//! The server going away and coming back. It forgets nothing.

use std::time::Duration;

use oarsman_sync::latest as watch;

use super::FakeCluster;
use crate::dice::Chance;
use crate::line::Service;
use crate::trace::Entry;

impl Service for FakeCluster {
    fn restart(&self, down: Duration, _: Chance) {
        let mut state = self.state();
        state.trace.append(Entry::ClusterAway { down });
        state.away_until = Some(state.clock.elapsed() + down);
        drop(state);
        self.0.outages.send_modify(|count| *count += 1);
    }

    fn outages(&self) -> watch::Receiver<u64> {
        self.0.outages.subscribe()
    }
}
