//! Lists that may be larger than a message: what cannot be had at once is asked for in parts.
//!
//! A list carries all annotations that pods have, so that a few authors of pods could make it exceed what gRPC takes, and the agent
//! would not know any more what runs.

use oarsman_cri_types::v1 as cri;

use super::RemoteRuntime;
use super::pending_call::send;
use crate::deadline::DeadlineClass;
use crate::{CriError, ErrorCode, Result};

impl RemoteRuntime {
    /// Sandboxes; all of them come state by state when they are too large together.
    pub(super) async fn sandboxes(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>> {
        let is_whole = filter.is_none();
        match self.sandboxes_at_once(filter).await {
            Err(error) if is_whole && is_too_large(&error) => {
                tracing::warn!(call = "ListPodSandbox", %error, "runtime list larger than a message, listing in parts");
                self.sandboxes_by_state().await
            }
            listed => listed,
        }
    }

    /// Containers; all of them come sandbox by sandbox when they are too large together.
    pub(super) async fn containers(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>> {
        let is_whole = filter.is_none();
        match self.containers_at_once(filter).await {
            Err(error) if is_whole && is_too_large(&error) => {
                tracing::warn!(call = "ListContainers", %error, "runtime list larger than a message, listing in parts");
                self.containers_by_sandbox().await
            }
            listed => listed,
        }
    }

    async fn sandboxes_by_state(&self) -> Result<Vec<cri::PodSandbox>> {
        let mut all = Vec::new();
        for state in [cri::PodSandboxState::SandboxReady, cri::PodSandboxState::SandboxNotready] {
            let state = Some(cri::PodSandboxStateValue { state: state.into() });
            let filter = cri::PodSandboxFilter { state, ..Default::default() };
            all.extend(self.sandboxes_at_once(Some(filter)).await?);
        }
        // One that ended between the two calls is in both; what was said last counts.
        all.reverse();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all.dedup_by(|a, b| a.id == b.id);
        Ok(all)
    }

    async fn containers_by_sandbox(&self) -> Result<Vec<cri::Container>> {
        let mut all = Vec::new();
        for sandbox in self.sandboxes(None).await? {
            let filter = cri::ContainerFilter { pod_sandbox_id: sandbox.id, ..Default::default() };
            all.extend(self.containers_at_once(Some(filter)).await?);
        }
        Ok(all)
    }

    async fn sandboxes_at_once(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>> {
        let attempt = self.attempt("ListPodSandbox", "", DeadlineClass::Ordinary);
        let message = cri::ListPodSandboxRequest { filter };
        let answer = send!(self.runtime.list_pod_sandbox(message), attempt)?;
        Ok(answer.items)
    }

    async fn containers_at_once(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>> {
        let attempt = self.attempt("ListContainers", "", DeadlineClass::Ordinary);
        let message = cri::ListContainersRequest { filter };
        let answer = send!(self.runtime.list_containers(message), attempt)?;
        Ok(answer.containers)
    }
}

/// Go's gRPC says the one of a message above its bound, ours the other.
fn is_too_large(error: &CriError) -> bool {
    matches!(error.code(), ErrorCode::ResourceExhausted | ErrorCode::OutOfRange)
}
