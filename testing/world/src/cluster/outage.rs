//! Outages of the API server. It forgets nothing.

use std::time::Duration;

use oarsman_sync::ordered_watch as watch;

use super::FakeCluster;
use crate::link::RemoteService;
use crate::rng::Probability;
use crate::trace::TraceEntry;

impl RemoteService for FakeCluster {
    fn restart(&self, down: Duration, _: Probability) {
        let mut state = self.state();
        state.trace.append(TraceEntry::ClusterAway { down });
        state.away_until = Some(state.clock.elapsed() + down);
        drop(state);
        self.0.outages.send_modify(|count| *count += 1);
    }

    fn outages(&self) -> watch::Receiver<u64> {
        self.0.outages.subscribe()
    }
}
