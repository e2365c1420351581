//! `nodeInfo` of the node status.

use k8s_openapi::api::core::v1::{NodeSwapStatus, NodeSystemInfo};

use super::NodeStatusInput;

/// The system that all our nodes run.
pub(crate) const OS: &str = "linux";

pub(super) fn info(input: &NodeStatusInput<'_>) -> NodeSystemInfo {
    let (machine, runtime) = (input.machine, input.runtime);
    let swap = i64::try_from(machine.swap).ok().filter(|swap| *swap > 0);
    NodeSystemInfo {
        architecture: machine.architecture.clone(),
        boot_id: machine.boot_id.clone(),
        container_runtime_version: format!("{}://{}", runtime.name, version(&runtime.version)),
        kernel_version: machine.kernel.clone(),
        kube_proxy_version: String::new(),
        kubelet_version: input.profile.version.clone(),
        machine_id: machine.machine_id.clone(),
        operating_system: OS.to_owned(),
        os_image: machine.os_image.clone(),
        swap: swap.map(|swap| NodeSwapStatus { capacity: Some(swap) }),
        system_uuid: machine.system_uuid.clone(),
    }
}

/// The version as Kubernetes writes one: without the `v`, and without an addition that is none of a semantic version, such as
/// `~ds1`.
fn version(reported: &str) -> &str {
    let reported = reported.trim();
    let reported = reported.strip_prefix('v').unwrap_or(reported);
    let numbers =
        reported.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(reported.len());
    let (numbers, addition) = reported.split_at(numbers);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
    match numbers.trim_end_matches('.') {
        "" => "Unknown",
        _ if addition.starts_with(['-', '+']) && addition.chars().all(is_plain) => reported,
        numbers => numbers,
    }
}
