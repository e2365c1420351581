//! Stops a container: the stop signal first, SIGKILL after the grace period.

use std::time::Duration;

use oarsman_cri::Result;
use tokio::time::timeout;

use super::FakeRuntime;

impl FakeRuntime {
    /// Sends the stop signal to a container and waits for its grace period; when this is dropped in between, the container is not killed.
    pub(super) async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        const CALL: &str = "StopContainer";
        let asked = if grace.is_zero() { None } else { self.serve(CALL)?.ask_to_stop(id) };
        if let Some(mut ended) = asked {
            // Either way it goes on: the container has ended or is gone, or its grace period is over.
            timeout(whole_seconds(grace), ended.wait_for(|ended| *ended)).await.ok();
        }
        self.serve(CALL)?.kill(id);
        Ok(())
    }
}

/// Grace periods travel in whole seconds, rounded up.
fn whole_seconds(grace: Duration) -> Duration {
    Duration::from_secs(grace.as_secs().saturating_add(u64::from(grace.subsec_nanos() > 0)))
}
