//! Updates a container's limits.

use oarsman_cri::{CriError, ErrorCode, Result};
use oarsman_cri_types::v1::{LinuxContainerResources, UpdateContainerResourcesRequest};

use super::ContainerRunState;
use crate::runtime::state::FakeRuntimeState;

impl FakeRuntimeState {
    /// Sets the limits in the request; the others stay.
    pub(in crate::runtime) fn update_resources(
        &mut self,
        request: UpdateContainerResourcesRequest,
    ) -> Result<()> {
        const CALL: &str = "UpdateContainerResources";
        let id = request.container_id;
        self.container(CALL, &id)?;
        let Some(container) = self.containers.get_mut(&id) else { return Ok(()) };
        if container.lost || matches!(container.run_state, ContainerRunState::Exited(_)) {
            let message = "the container neither runs nor waits to be started";
            return Err(CriError::new(CALL, ErrorCode::Unknown, message).on(id));
        }
        let linux = container.config.linux.get_or_insert_default();
        merge(linux.resources.get_or_insert_default(), request.linux.unwrap_or_default());
        Ok(())
    }
}

fn merge(limits: &mut LinuxContainerResources, new: LinuxContainerResources) {
    for (limit, new) in [
        (&mut limits.cpu_period, new.cpu_period),
        (&mut limits.cpu_quota, new.cpu_quota),
        (&mut limits.cpu_shares, new.cpu_shares),
        (&mut limits.memory_limit_in_bytes, new.memory_limit_in_bytes),
        (&mut limits.memory_swap_limit_in_bytes, new.memory_swap_limit_in_bytes),
        (&mut limits.oom_score_adj, new.oom_score_adj),
    ] {
        if new != 0 {
            *limit = new;
        }
    }
    for (limit, new) in
        [(&mut limits.cpuset_cpus, new.cpuset_cpus), (&mut limits.cpuset_mems, new.cpuset_mems)]
    {
        if !new.is_empty() {
            *limit = new;
        }
    }
    limits.unified.extend(new.unified);
}
