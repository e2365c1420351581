//! Deadlines around the seams that do not promise any themselves: a mount or an API server that hangs is one failed call, which
//! its caller tries again, and never a worker that waits for ever.

use std::sync::Arc;
use std::time::Duration;

use oarsman_seam::{Call, CallFault, Middleware, SeamError, WithMiddleware};
use oarsman_state::CheckpointStore;
use tokio::time::timeout;

use super::Seams;

/// Volumes may take their time.
const FILES: CallDeadline = CallDeadline(Duration::from_secs(120));
/// Small files, and a resolver that is given up after two seconds.
const HOST_INFO: CallDeadline = CallDeadline(Duration::from_secs(10));
const CLUSTER: CallDeadline = CallDeadline(Duration::from_secs(30));

/// The same seams, none of whose calls lasts for ever. The node's object has none here: its callers keep deadlines of their own.
pub(crate) fn with_deadlines(seams: Seams) -> Seams {
    Seams {
        cluster: Arc::new(WithMiddleware::new(seams.cluster, CLUSTER)),
        volumes: Arc::new(WithMiddleware::new(seams.volumes, FILES)),
        cgroups: Arc::new(WithMiddleware::new(seams.cgroups, FILES)),
        host_info: Arc::new(WithMiddleware::new(seams.host_info, HOST_INFO)),
        pod_files: Arc::new(WithMiddleware::new(seams.pod_files, FILES)),
        records: Arc::new(WithMiddleware::new(seams.records, FILES)),
        pull_records: Arc::new(WithMiddleware::new(seams.pull_records, FILES)),
        checkpoints: seams.checkpoints.map(|store| {
            let store: Arc<dyn CheckpointStore> = Arc::new(WithMiddleware::new(store, FILES));
            store
        }),
        credential_plugins: Arc::new(WithMiddleware::new(seams.credential_plugins, FILES)),
        ..seams
    }
}

/// No call takes longer.
#[derive(Clone, Copy, Debug)]
struct CallDeadline(Duration);

impl Middleware for CallDeadline {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let late = |_| Err(E::of_fault(&call, CallFault::TimedOut(self.0)));
        timeout(self.0, answer).await.unwrap_or_else(late)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use oarsman_core::ids::PodUid;
    use oarsman_state::{FileError, StatusRecords, StatusRecordsLayer};

    use super::*;

    /// Files on a mount that is gone: every call hangs.
    struct HangingRecords;

    #[oarsman_seam::async_trait]
    impl StatusRecords for HangingRecords {
        async fn write_status(
            &self,
            _: &PodUid,
            _: &k8s_openapi::api::core::v1::PodStatus,
            _: bool,
        ) -> Result<(), FileError> {
            pending().await
        }

        async fn read_status(
            &self,
            _: &PodUid,
        ) -> Result<Option<k8s_openapi::api::core::v1::PodStatus>, FileError> {
            pending().await
        }

        async fn remove(&self, _: &PodUid) -> Result<(), FileError> {
            pending().await
        }

        async fn pods(&self) -> Result<std::collections::BTreeSet<PodUid>, FileError> {
            pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_fails_with_what_it_was_about() {
        let inner: Arc<dyn StatusRecords> = Arc::new(HangingRecords);
        let records = WithMiddleware::new(inner, FILES);
        let failed = StatusRecordsLayer::remove(&records, &PodUid::from("a")).await.unwrap_err();
        assert_eq!(failed.to_string(), "cannot remove the record of a: no answer within 120s");
    }
}
