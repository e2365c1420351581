//! Stopping a container: asked first, killed when its grace is over.

use std::time::Duration;

use oarsman_cri::Result;
use tokio::time::timeout;

use super::FakeRuntime;

impl FakeRuntime {
    /// Asks a container to stop and waits for its grace; when this is dropped in between, nobody
    /// kills it.
    pub(super) async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        const CALL: &str = "StopContainer";
        let asked = if grace.is_zero() { None } else { self.serve(CALL)?.ask_to_stop(id) };
        if let Some(mut ended) = asked {
            // Both ways lead on: it has ended or is gone, or its grace is over.
            timeout(whole_seconds(grace), ended.wait_for(|ended| *ended)).await.ok();
        }
        self.serve(CALL)?.kill(id);
        Ok(())
    }
}

/// Grace travels in whole seconds, rounded up.
fn whole_seconds(grace: Duration) -> Duration {
    Duration::from_secs(grace.as_secs().saturating_add(u64::from(grace.subsec_nanos() > 0)))
}
