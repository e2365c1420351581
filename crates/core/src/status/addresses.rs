//! The addresses of pod and node in a status.

use k8s_openapi::api::core::v1::{HostIP, PodIP, PodStatus};

use super::context::StatusContext;
use super::some;
use crate::pod::PodExt;

/// Fills in the addresses of pod and node.
pub(super) fn fill(context: &StatusContext<'_>, status: &mut PodStatus) {
    let node = context.input.node;
    let host_ips = node.primary_first(&node.host_ips);
    let pod_ips = match context.pod.host_network() {
        true => host_ips.clone(),
        false => pod_ips(context),
    };
    status.host_ip = host_ips.first().cloned();
    status.host_ips = some(host_ips.into_iter().map(|ip| HostIP { ip }).collect());
    status.pod_ip = pod_ips.first().cloned();
    status.pod_ips = some(pod_ips.into_iter().map(|ip| PodIP { ip }).collect());
}

/// What the newest sandbox has, the node's primary family first. A pod that has no sandbox ready keeps the
/// addresses it had, which those who watch it go may still want to know.
fn pod_ips(context: &StatusContext<'_>) -> Vec<String> {
    let current = context.view.newest_sandbox().map(|sandbox| &sandbox.ips[..]).unwrap_or_default();
    let any_ready = context.view.sandboxes.iter().any(|sandbox| sandbox.ready);
    if current.is_empty() && !any_ready {
        return context.previous.pod_ips.iter().flatten().map(|ip| ip.ip.clone()).collect();
    }
    context.input.node.primary_first(current)
}
