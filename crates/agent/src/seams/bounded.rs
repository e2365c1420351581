//! Deadlines around the seams that do not promise any themselves: a mount or an API server that hangs is one failed call, which
//! its caller tries again, and never a worker that waits for ever.

use std::sync::Arc;
use std::time::Duration;

use oarsman_seam::{Call, CallFault, Middleware, SeamError, Through};
use tokio::time::timeout;

use super::Seams;

/// Volumes may take their time.
const FILES: Deadline = Deadline(Duration::from_secs(120));
const CLUSTER: Deadline = Deadline(Duration::from_secs(30));

/// The same seams, none of whose calls lasts for ever. The node's object has none here: its callers keep deadlines of their own.
pub(crate) fn bounded(seams: Seams) -> Seams {
    Seams {
        cluster: Arc::new(Through::new(seams.cluster, CLUSTER)),
        volumes: Arc::new(Through::new(seams.volumes, FILES)),
        cgroups: Arc::new(Through::new(seams.cgroups, FILES)),
        pod_files: Arc::new(Through::new(seams.pod_files, FILES)),
        records: Arc::new(Through::new(seams.records, FILES)),
        credential_plugins: Arc::new(Through::new(seams.credential_plugins, FILES)),
        ..seams
    }
}

/// No call takes longer.
#[derive(Clone, Copy, Debug)]
struct Deadline(Duration);

impl Middleware for Deadline {
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
    use oarsman_state::{FileError, Records, RecordsLayer};

    use super::*;

    /// Files on a mount that is gone: every call hangs.
    struct Gone;

    #[oarsman_seam::async_trait]
    impl Records for Gone {
        async fn remember(
            &self,
            _: &PodUid,
            _: &k8s_openapi::api::core::v1::PodStatus,
            _: bool,
        ) -> Result<(), FileError> {
            pending().await
        }

        async fn recall(
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
        let inner: Arc<dyn Records> = Arc::new(Gone);
        let records = Through::new(inner, FILES);
        let failed = RecordsLayer::remove(&records, &PodUid::from("a")).await.unwrap_err();
        assert_eq!(failed.to_string(), "cannot remove the record of a: no answer within 120s");
    }
}
