//! Validation of reserved resources, and of the cgroups they are enforced on.

use std::collections::{BTreeMap, BTreeSet};

use oarsman_core::quantity::Quantity;

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;
use crate::enums::NodeAllocatableEnforcement;
use crate::field_path::FieldPath;

const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    amounts("systemReserved", &kubelet.system_reserved, found);
    amounts("kubeReserved", &kubelet.kube_reserved, found);
    enforced(kubelet, found);
    exclusive(kubelet, found);
    let has_cgroup = [&kubelet.system_reserved_cgroup, &kubelet.kube_reserved_cgroup]
        .iter()
        .any(|cgroup| !cgroup.is_empty());
    if !kubelet.reserved_system_cpus.is_empty() && has_cgroup {
        found.wrong(
            "reservedSystemCPUs",
            "cannot be used together with systemReservedCgroup or kubeReservedCgroup; leave one of them out",
        );
    }
    memory(kubelet, found);
}

fn amounts(path: &str, reserved: &BTreeMap<String, Quantity>, found: &mut ProblemCollector) {
    for (resource, amount) in reserved {
        let field = FieldPath::at(path).key(resource);
        if !RESERVABLE.contains(&resource.as_str()) {
            found
                .wrong_at(field, format!("cannot be reserved; only {} can", RESERVABLE.join(", ")));
        } else if amount.is_negative() {
            found.wrong_at(field, format!("{amount} is negative; write how much is kept back"));
        }
    }
}

fn enforced(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    use NodeAllocatableEnforcement::{
        KubeReserved, KubeReservedCompressible, None, Pods, SystemReserved,
        SystemReservedCompressible,
    };
    let path = "enforceNodeAllocatable";
    let all = &kubelet.enforce_node_allocatable;
    for (number, one) in all.iter().enumerate() {
        let field = FieldPath::at(path).item(number);
        let missing = match one {
            SystemReserved | SystemReservedCompressible
                if kubelet.system_reserved_cgroup.is_empty() =>
            {
                Some("systemReservedCgroup")
            }
            KubeReserved | KubeReservedCompressible if kubelet.kube_reserved_cgroup.is_empty() => {
                Some("kubeReservedCgroup")
            }
            _ => Option::None,
        };
        if let Some(missing) = missing {
            found.wrong_at(
                field.clone(),
                format!("needs to know whose cgroup that is: set {missing}"),
            );
        }
        if all[..number].contains(one) {
            found.wrong_at(field.clone(), "is there twice; drop one of them");
        }
        match one {
            None if all.len() > 1 => {
                found.wrong_at(field, "\"none\" stands alone; drop the others, or it");
            }
            None => {}
            Pods
            | SystemReserved
            | SystemReservedCompressible
            | KubeReserved
            | KubeReservedCompressible => {
                if !kubelet.cgroups_per_qos {
                    let fix = "needs cgroupsPerQOS: true; or write enforceNodeAllocatable: []";
                    found.wrong_at(field, fix);
                }
            }
        }
    }
}

fn exclusive(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let all = &kubelet.enforce_node_allocatable;
    let pairs = [
        (
            NodeAllocatableEnforcement::SystemReserved,
            NodeAllocatableEnforcement::SystemReservedCompressible,
            "system-reserved",
        ),
        (
            NodeAllocatableEnforcement::KubeReserved,
            NodeAllocatableEnforcement::KubeReservedCompressible,
            "kube-reserved",
        ),
    ];
    for (_, _, name) in
        pairs.iter().filter(|(one, other, _)| all.contains(one) && all.contains(other))
    {
        found.wrong(
            "enforceNodeAllocatable",
            format!("{name} and {name}-compressible cannot both be enforced; drop one of them"),
        );
    }
}

fn memory(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let mut seen = BTreeSet::new();
    for (number, reserved) in kubelet.reserved_memory.iter().enumerate() {
        let node = reserved.numa_node;
        let here = FieldPath::at("reservedMemory").item(number);
        for (kind, amount) in &reserved.limits {
            let field = here.clone().key("limits").key(kind);
            if kind != "memory" && !kind.starts_with("hugepages-") {
                found.wrong_at(
                    field.clone(),
                    "cannot be reserved; only memory and hugepages-SIZE can",
                );
            }
            if amount.is_zero() || amount.is_negative() {
                found.wrong_at(field.clone(), format!("{amount} must be more than nothing"));
            }
            if !seen.insert((node, kind)) {
                found.wrong_at(
                    field,
                    format!("is there twice for NUMA node {node}; drop one of them"),
                );
            }
        }
    }
}
