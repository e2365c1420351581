//! Validation of cgroups, swap, memory and user namespaces.

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;
use crate::enums::MemoryReservationPolicy;

/// User ids are handed out in blocks of this many.
const BLOCK: i64 = 65536;

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    if !kubelet.system_cgroups.is_empty() && kubelet.cgroup_root.is_empty() {
        found.wrong(
            "systemCgroups",
            format!("{:?} needs a cgroupRoot as well, such as /", kubelet.system_cgroups),
        );
    }
    if kubelet.run_once {
        found.wrong(
            "runOnce",
            "true is no longer possible; use `oarsman run` for pods that run once",
        );
    }
    if kubelet.container_runtime_endpoint.is_empty() {
        found.wrong(
            "containerRuntimeEndpoint",
            "is empty; name the runtime's socket, such as unix:///run/containerd/containerd.sock",
        );
    }
    let tiers = kubelet.memory_reservation_policy == MemoryReservationPolicy::TieredReservation;
    found.needs_gate(kubelet, "memoryReservationPolicy", tiers, "MemoryQoS");
    let ids = kubelet.user_namespaces.ids_per_pod;
    let path = "userNamespaces.idsPerPod";
    found.between(path, ids, BLOCK, i64::from(u32::MAX));
    if ids >= BLOCK && ids % BLOCK != 0 {
        found.wrong(path, format!("{ids} must be a multiple of {BLOCK}"));
    }
    for resource in kubelet.qos_reserved.keys().filter(|resource| *resource != "memory") {
        let field = crate::FieldPath::at("qosReserved").key(resource);
        found.wrong_at(field, "cannot be reserved by class; only memory can");
    }
    found.needs_gate(kubelet, "qosReserved", !kubelet.qos_reserved.is_empty(), "QOSReserved");
    for (number, sysctl) in kubelet.allowed_unsafe_sysctls.iter().enumerate() {
        let name = sysctl.strip_suffix('*').unwrap_or(sysctl);
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            let field = crate::FieldPath::at("allowedUnsafeSysctls").item(number);
            found.wrong_at(
                field,
                format!("{sysctl:?} is no sysctl; write it like net.core.somaxconn or kernel.shm*"),
            );
        }
    }
}
