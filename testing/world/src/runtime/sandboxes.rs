//! Sandboxes of the fake runtime: made, stopped, removed, listed.

use oarsman_cri::{CriError, ErrorCode, Result};
use oarsman_cri_types::v1::{
    ContainerEventType, LinuxPodSandboxStatus, Namespace, NamespaceMode, NamespaceOption,
    PodSandbox, PodSandboxConfig, PodSandboxMetadata, PodSandboxNetworkStatus, PodSandboxState,
    PodSandboxStatus, RunPodSandboxRequest,
};

use super::names;
use super::state::FakeRuntimeState;
use crate::trace::{SandboxTransition, TraceEntry, TracedSandbox};

/// The one handler besides the nameless default.
pub(super) const HANDLER: &str = "fake";

/// What containerd says while no CNI plugin is configured.
pub(super) const NO_NETWORK: &str = "Network plugin returns error: cni plugin not initialized";

pub(super) struct FakeSandbox {
    pub(super) id: String,
    pub(super) metadata: PodSandboxMetadata,
    pub(super) config: PodSandboxConfig,
    handler: String,
    pub(super) phase: SandboxPhase,
    created_at: i64,
    /// Its address; empty in the host's network.
    pub(super) ip: String,
}

/// The state of a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxPhase {
    Ready,
    /// Its process is gone, its network is not.
    Broken,
    Stopped,
}

impl FakeRuntimeState {
    /// Makes a sandbox.
    pub(super) fn run_sandbox(&mut self, request: RunPodSandboxRequest) -> Result<String> {
        const CALL: &str = "RunPodSandbox";
        let RunPodSandboxRequest { config, runtime_handler: handler } = request;
        let config = config.unwrap_or_default();
        let metadata =
            config.metadata.clone().ok_or_else(|| missing_field(CALL, "config.metadata"))?;
        if !["", HANDLER].contains(&handler.as_str()) {
            let message = format!("no runtime for {handler:?} is configured");
            return Err(CriError::new(CALL, ErrorCode::Unknown, message));
        }
        self.check_user_namespace(CALL, &config, &handler)?;
        if !self.has_network() && !on_host_network(&config) {
            return Err(CriError::new(CALL, ErrorCode::Unknown, NO_NETWORK));
        }
        let id = self.next_id();
        self.names.take(CALL, &names::of_sandbox(&metadata), &id, self.clock.elapsed())?;
        let ip = if on_host_network(&config) { String::new() } else { self.next_address() };
        let created_at = self.clock.stamp();
        let phase = SandboxPhase::Ready;
        let sandbox =
            FakeSandbox { id: id.clone(), metadata, config, handler, phase, created_at, ip };
        self.sandboxes.insert(id.clone(), sandbox);
        self.trace_sandbox_change(&id, SandboxTransition::Started);
        self.send_event_for(ContainerEventType::ContainerCreatedEvent, &id, &id);
        self.send_event_for(ContainerEventType::ContainerStartedEvent, &id, &id);
        Ok(id)
    }

    /// Stops a sandbox and kills what runs in it; not an error when there is none.
    pub(super) fn stop_sandbox(&mut self, id: &str) {
        for container in self.containers_of(id) {
            self.kill(&container);
        }
        let Some(sandbox) = self.sandboxes.get_mut(id) else { return };
        match std::mem::replace(&mut sandbox.phase, SandboxPhase::Stopped) {
            SandboxPhase::Stopped => {}
            SandboxPhase::Broken => self.trace_sandbox_change(id, SandboxTransition::Stopped),
            SandboxPhase::Ready => {
                self.trace_sandbox_change(id, SandboxTransition::Stopped);
                self.send_event_for(ContainerEventType::ContainerStoppedEvent, id, id);
            }
        }
    }

    /// Removes a sandbox with all its containers; not an error when there is none.
    pub(super) fn remove_sandbox(&mut self, id: &str) {
        self.stop_sandbox(id);
        for container in self.containers_of(id) {
            self.remove_container(&container);
        }
        if !self.sandboxes.contains_key(id) {
            return;
        }
        self.trace_sandbox_change(id, SandboxTransition::Removed);
        if let Some(sandbox) = self.sandboxes.remove(id) {
            self.names.release(&names::of_sandbox(&sandbox.metadata));
        }
        self.send_event_for(ContainerEventType::ContainerDeletedEvent, id, id);
    }

    /// Ends a sandbox's own process.
    pub(super) fn break_sandbox(&mut self, id: &str) {
        let ready =
            self.sandboxes.get_mut(id).filter(|sandbox| sandbox.phase == SandboxPhase::Ready);
        if let Some(sandbox) = ready {
            sandbox.phase = SandboxPhase::Broken;
            self.trace_sandbox_change(id, SandboxTransition::Died);
            self.send_event_for(ContainerEventType::ContainerStoppedEvent, id, id);
        }
    }

    pub(super) fn sandbox(&self, call: &'static str, id: &str) -> Result<&FakeSandbox> {
        self.sandboxes.get(id).ok_or_else(|| CriError::not_found(call, id))
    }

    /// A sandbox that can take containers and connections.
    pub(super) fn ready_sandbox(&self, call: &'static str, id: &str) -> Result<&FakeSandbox> {
        let sandbox = self.sandbox(call, id)?;
        if sandbox.phase != SandboxPhase::Ready {
            let message = "the sandbox is not ready";
            return Err(CriError::new(call, ErrorCode::Unknown, message).on(id));
        }
        Ok(sandbox)
    }

    fn trace_sandbox_change(&self, id: &str, change: SandboxTransition) {
        if let Some(sandbox) = self.sandboxes.get(id) {
            self.trace.append(TraceEntry::Sandbox { target: sandbox.name(), change });
        }
    }

    /// Addresses are not reused: no simulation runs long enough to use up 10.0.0.0/8.
    fn next_address(&mut self) -> String {
        let [_, _, _, _, _, b, c, d] = self.next_number().to_be_bytes();
        format!("10.{b}.{c}.{d}")
    }
}

impl FakeSandbox {
    pub(super) fn status(&self) -> PodSandboxStatus {
        let network = PodSandboxNetworkStatus { ip: self.ip.clone(), additional_ips: Vec::new() };
        let namespaces = Namespace { options: Some(namespaces(&self.config)) };
        PodSandboxStatus {
            id: self.id.clone(),
            metadata: Some(self.metadata.clone()),
            state: self.state().into(),
            created_at: self.created_at,
            network: (self.phase != SandboxPhase::Stopped).then_some(network),
            linux: Some(LinuxPodSandboxStatus { namespaces: Some(namespaces) }),
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            runtime_handler: self.handler.clone(),
        }
    }

    pub(super) fn listed(&self) -> PodSandbox {
        PodSandbox {
            id: self.id.clone(),
            metadata: Some(self.metadata.clone()),
            state: self.state().into(),
            created_at: self.created_at,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            runtime_handler: self.handler.clone(),
        }
    }

    pub(super) fn state(&self) -> PodSandboxState {
        match self.phase {
            SandboxPhase::Ready => PodSandboxState::SandboxReady,
            SandboxPhase::Broken | SandboxPhase::Stopped => PodSandboxState::SandboxNotready,
        }
    }

    fn name(&self) -> TracedSandbox {
        let PodSandboxMetadata { name, uid, namespace, attempt } = self.metadata.clone();
        TracedSandbox { pod_uid: uid, namespace, name, attempt, id: self.id.clone() }
    }
}

fn namespaces(config: &PodSandboxConfig) -> NamespaceOption {
    let security = config.linux.as_ref().and_then(|linux| linux.security_context.as_ref());
    security.and_then(|security| security.namespace_options.clone()).unwrap_or_default()
}

fn on_host_network(config: &PodSandboxConfig) -> bool {
    namespaces(config).network() == NamespaceMode::Node
}

/// A request without a required field.
pub(super) fn missing_field(call: &'static str, field: &str) -> CriError {
    CriError::new(call, ErrorCode::InvalidArgument, format!("the request has no {field}"))
}
