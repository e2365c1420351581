//! Reads the true state, also during an outage of the runtime. For other parts of the world, never for agents.

use std::path::PathBuf;

use super::FakeRuntime;

impl FakeRuntime {
    /// Whether a process of a pod runs, known to the runtime or not.
    pub(crate) fn runs_pod(&self, uid: &str) -> bool {
        let state = self.state();
        let of_pod = |id: &str| state.sandboxes.get(id).is_some_and(|one| one.metadata.uid == uid);
        state.containers.values().any(|container| container.runs() && of_pod(&container.sandbox))
    }

    /// The name servers that the sandboxes of a pod were made with.
    pub fn name_servers(&self, uid: &str) -> Vec<String> {
        let state = self.state();
        let of_pod = state.sandboxes.values().filter(|sandbox| sandbox.metadata.uid == uid);
        let resolvers = of_pod.filter_map(|sandbox| sandbox.config.dns_config.as_ref());
        resolvers.flat_map(|resolver| resolver.servers.clone()).collect()
    }

    /// The file or directory of the host that a container sees at exactly that path.
    pub(crate) fn mounted_at(&self, container: &str, path: &str) -> Option<PathBuf> {
        let state = self.state();
        let mounts = &state.containers.get(container)?.config.mounts;
        let mount = mounts.iter().find(|mount| mount.container_path == path)?;
        Some(PathBuf::from(&mount.host_path))
    }
}
