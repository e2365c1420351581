//! The numbers of one container, as its runtime takes them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use oarsman_cri_types::v1::{HugepageLimit, LinuxContainerResources};

use crate::pod::PodExt;
use crate::qos::{self, QosClass};
use crate::quantity::Quantity;
use crate::resources::amounts::{ResourceList, read};

use super::totals::{amount, own_limits};
use super::{CgroupVersion, NodeResources, Swap, cpu, hugepages, oom_score_adj};

/// The resources of one of the pod's containers.
pub fn container(pod: &Pod, spec: &Container, node: &NodeResources) -> LinuxContainerResources {
    let asked = ContainerAmounts::of(pod, spec);
    let mut resources = cpu_and_memory(
        asked.requests.get("cpu"),
        &amount(&asked.limits, "cpu"),
        &amount(&asked.limits, "memory"),
        node,
    );
    let score = oom_score_adj(pod, spec, node.machine_memory);
    resources.oom_score_adj = score.max(node.lowest_oom_score_adj);
    let pages = hugepages::by_size(&asked.limits);
    resources.hugepage_limits = hugepage_limits(&node.hugepage_sizes, &pages);
    limit_swap(&mut resources, pod, spec, node);
    resources
}

/// What a container asks for. Limits it has not set are those of the pod.
struct ContainerAmounts {
    requests: ResourceList,
    limits: ResourceList,
}

impl ContainerAmounts {
    fn of(pod: &Pod, spec: &Container) -> Self {
        let unset = ResourceRequirements::default();
        let resources = spec.resources.as_ref().unwrap_or(&unset);
        let mut limits = own_limits(pod);
        let set = read(resources.limits.as_ref()).into_iter();
        limits.extend(set.filter(|(name, limit)| !limit.is_zero() || is_hugepages(name)));
        Self { requests: read(resources.requests.as_ref()), limits }
    }
}

/// Nothing of huge pages is a limit; of CPU and memory it is none.
fn is_hugepages(name: &str) -> bool {
    hugepages::size_of_resource(name).is_some()
}

/// The part that containers, sandboxes and overhead have in common.
pub(super) fn cpu_and_memory(
    cpu_request: Option<&Quantity>,
    cpu_limit: &Quantity,
    memory_limit: &Quantity,
    node: &NodeResources,
) -> LinuxContainerResources {
    let shares = cpu::shares(cpu_request.unwrap_or(cpu_limit).millis());
    let mut resources = LinuxContainerResources {
        cpu_shares: i64::try_from(shares).unwrap_or(i64::MAX),
        memory_limit_in_bytes: memory_limit.units(),
        unified: unified(node),
        ..LinuxContainerResources::default()
    };
    if node.cfs_quota {
        resources.cpu_period = node.period_micros();
        resources.cpu_quota =
            cpu::quota(cpu_limit.millis(), resources.cpu_period).unwrap_or_default();
    }
    resources
}

fn unified(node: &NodeResources) -> BTreeMap<String, String> {
    let all_at_once = node.cgroups == CgroupVersion::V2 && !node.single_process_oom_kill;
    let entry = ("memory.oom.group".to_owned(), "1".to_owned());
    all_at_once.then_some(entry).into_iter().collect()
}

fn hugepage_limits(sizes: &[u64], asked: &BTreeMap<u64, u64>) -> Vec<HugepageLimit> {
    let limits = hugepages::limits(sizes, asked);
    limits.into_iter().map(|(page_size, limit)| HugepageLimit { page_size, limit }).collect()
}

/// In v1 a container's swap is limited together with its memory, in v2 by itself.
fn limit_swap(
    resources: &mut LinuxContainerResources,
    pod: &Pod,
    spec: &Container,
    node: &NodeResources,
) {
    let capacity = match node.swap {
        Swap::Unlimitable => return,
        Swap::Forbidden => 0,
        Swap::Limited { capacity } => capacity,
    };
    match node.cgroups {
        CgroupVersion::V1 => resources.memory_swap_limit_in_bytes = resources.memory_limit_in_bytes,
        CgroupVersion::V2 => {
            let swap = if may_swap(pod) { share_of_swap(spec, capacity, node) } else { 0 };
            resources.unified.insert("memory.swap.max".to_owned(), swap.to_string());
        }
    }
}

fn may_swap(pod: &Pod) -> bool {
    qos::class(pod) == QosClass::Burstable && !pod.is_critical()
}

/// The part of the swap that the container's memory request is of the machine's memory. One that
/// requests as much as it may use has asked not to be swapped.
fn share_of_swap(spec: &Container, capacity: u64, node: &NodeResources) -> u64 {
    let resources = spec.resources.as_ref();
    let request = amount(&read(resources.and_then(|all| all.requests.as_ref())), "memory");
    let limit = amount(&read(resources.and_then(|all| all.limits.as_ref())), "memory");
    if request == limit {
        return 0;
    }
    let request = u128::try_from(request.units()).unwrap_or_default();
    let share = request * u128::from(capacity) / u128::from(node.machine_memory.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}
