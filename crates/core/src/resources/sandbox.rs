//! What a runtime is told of a pod as a whole when it makes the sandbox: sizes for a virtual machine.

use k8s_openapi::api::core::v1::Pod;
use oarsman_cri_types::v1::LinuxContainerResources;

use super::NodeResources;
use super::container::cpu_and_memory;
use super::totals::{amount, limits_without_overhead, overhead, requests_without_overhead};

/// The two messages in a sandbox's Linux config.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxResources {
    /// What the containers need together, without the overhead.
    pub resources: LinuxContainerResources,
    /// What the sandbox itself costs, by the pod's runtime class; empty if nothing.
    pub overhead: LinuxContainerResources,
}

/// The resources of the pod's sandbox.
pub fn sandbox(pod: &Pod, node: &NodeResources) -> SandboxResources {
    let requests = requests_without_overhead(pod);
    let limits = limits_without_overhead(pod);
    let (cpu, memory) = (amount(&limits, "cpu"), amount(&limits, "memory"));
    SandboxResources {
        resources: cpu_and_memory(requests.get("cpu"), &cpu, &memory, node),
        overhead: of_overhead(pod, node),
    }
}

/// Overhead is requested and limited at once.
fn of_overhead(pod: &Pod, node: &NodeResources) -> LinuxContainerResources {
    let overhead = overhead(pod);
    if overhead.is_empty() {
        return LinuxContainerResources::default();
    }
    let cpu = amount(&overhead, "cpu");
    cpu_and_memory(Some(&cpu), &cpu, &amount(&overhead, "memory"), node)
}
