//! The addresses of pod and node in a status.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{HostIP, PodIP, PodStatus};

use super::scene::Scene;
use super::some;
use crate::pod::PodExt;

/// Fills in the addresses of pod and node.
pub(super) fn fill(scene: &Scene<'_>, status: &mut PodStatus) {
    let host_ips = &scene.input.node.host_ips;
    let pod_ips = match scene.pod.host_network() {
        true => primary_first(host_ips, host_ips),
        false => pod_ips(scene, host_ips),
    };
    let host_ips = primary_first(host_ips, host_ips);
    status.host_ip = host_ips.first().cloned();
    status.host_ips = some(host_ips.into_iter().map(|ip| HostIP { ip }).collect());
    status.pod_ip = pod_ips.first().cloned();
    status.pod_ips = some(pod_ips.into_iter().map(|ip| PodIP { ip }).collect());
}

/// What the newest sandbox has, the node's primary family first. A pod that has no sandbox ready keeps the
/// addresses it had, which those who watch it go may still want to know.
fn pod_ips(scene: &Scene<'_>, host_ips: &[String]) -> Vec<String> {
    let current = scene.view.newest_sandbox().map(|sandbox| &sandbox.ips[..]).unwrap_or_default();
    let any_ready = scene.view.sandboxes.iter().any(|sandbox| sandbox.ready);
    if current.is_empty() && !any_ready {
        return scene.previous.pod_ips.iter().flatten().map(|ip| ip.ip.clone()).collect();
    }
    primary_first(current, host_ips)
}

/// The first address of each family in the usual spelling, that of the node's primary family first.
pub(crate) fn primary_first(ips: &[String], host_ips: &[String]) -> Vec<String> {
    let v4_first = host_ips.iter().find_map(|ip| parse(ip)).is_none_or(|ip| ip.is_ipv4());
    let first = |v4: bool| ips.iter().filter_map(|ip| parse(ip)).find(|ip| ip.is_ipv4() == v4);
    let both = [first(v4_first), first(!v4_first)];
    both.into_iter().flatten().map(|ip| ip.to_string()).collect()
}

fn parse(ip: &str) -> Option<IpAddr> {
    ip.parse().ok()
}
