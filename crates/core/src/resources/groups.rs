//! The values of the control groups that are ours: those of pods, and of the classes above them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use crate::pod::PodExt;
use crate::qos::{self, QosClass};
use crate::quantity::Quantity;
use crate::resources::amounts::read;

use super::totals::{amount, own_limits, pod_limits, pod_requests};
use super::{NodeResources, cpu, hugepages};

/// More huge pages than there will ever be.
const UNLIMITED_HUGEPAGES: u64 = 1 << 62;

/// How much CPU time a group may have in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuQuota {
    /// As much as there is.
    Unlimited,
    /// Microseconds of CPU time in each period.
    Micros(u64),
}

/// The values of one group. What is not said stays as it is; the kernel starts without a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupValues {
    /// Its weight in v1 shares; [`cpu::weight`](super::weight) turns them into those of v2.
    pub shares: Option<u64>,
    /// The CPU limit as a quota; none leaves the quota as it is.
    pub quota: Option<CpuQuota>,
    /// The microseconds of the period the CPU limit is for.
    pub period: Option<u64>,
    /// Its memory limit in bytes.
    pub memory_max: Option<u64>,
    /// Its limit in bytes for each size of huge pages, by the size as control files spell it.
    pub hugetlb: BTreeMap<String, u64>,
    /// How many processes it may have.
    pub pids_max: Option<u64>,
}

/// The values of a pod's own group.
pub fn pod_cgroup(pod: &Pod, node: &NodeResources) -> CgroupValues {
    let requests = pod_requests(pod);
    let mut values = CgroupValues {
        shares: Some(cpu::shares(amount(&requests, "cpu").millis())),
        hugetlb: hugepages::limits(&node.hugepage_sizes, &hugepages::by_size(&requests)),
        pids_max: node.pod_pids_limit.filter(|limit| *limit > 0),
        ..CgroupValues::default()
    };
    match qos::class(pod) {
        QosClass::BestEffort => values.shares = Some(cpu::MIN_SHARES),
        class => limit(&mut values, pod, class, node),
    }
    values
}

/// A group is limited only where everything in it is: the sum of some limits would choke those
/// that have none.
fn limit(values: &mut CgroupValues, pod: &Pod, class: QosClass, node: &NodeResources) {
    let limits = pod_limits(pod);
    let applies = |name| class == QosClass::Guaranteed || everything_limits(pod, name);
    if applies("cpu") {
        values.quota = cpu_quota(amount(&limits, "cpu").millis(), node);
        values.period = values.quota.map(|_| node.period_micros().unsigned_abs());
    }
    if applies("memory") {
        let bytes = u64::try_from(amount(&limits, "memory").units()).unwrap_or_default();
        values.memory_max = Some(bytes).filter(|bytes| *bytes > 0);
    }
}

/// How many bytes a volume in memory may hold: its own limit, the pod's if everything in the pod is limited, and what the node has for
/// pods, whichever is least. None when there is none of them.
pub fn memory_volume_size(
    pod: &Pod,
    own: Option<&WireQuantity>,
    allocatable: Option<u64>,
) -> Option<u64> {
    let own = own.and_then(|limit| Quantity::try_from(limit).ok());
    let own = own.and_then(|limit| u64::try_from(limit.units()).ok());
    // Nothing of the node is in a limit of memory.
    let of_pod = pod_cgroup(pod, &NodeResources::of_memory(0)).memory_max;
    [own, of_pod, allocatable].into_iter().flatten().filter(|bytes| *bytes > 0).min()
}

fn cpu_quota(millis: i64, node: &NodeResources) -> Option<CpuQuota> {
    if !node.cfs_quota {
        return Some(CpuQuota::Unlimited);
    }
    let micros = cpu::quota(millis, node.period_micros())?;
    Some(CpuQuota::Micros(micros.unsigned_abs()))
}

/// Whether the pod as a whole, or each of its containers, has a limit on a resource.
fn everything_limits(pod: &Pod, name: &str) -> bool {
    let limits = |container: &Container| {
        let limits = read(container.resources.as_ref().and_then(|all| all.limits.as_ref()));
        !amount(&limits, name).is_zero()
    };
    !amount(&own_limits(pod), name).is_zero() || pod.regular().iter().chain(pod.init()).all(limits)
}

/// What a pod adds to the weight of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QosCpuClaim {
    class: QosClass,
    cpu_millis: i64,
}

impl QosCpuClaim {
    /// That of this pod.
    pub fn of(pod: &Pod) -> Self {
        let cpu_millis = amount(&pod_requests(pod), "cpu").millis();
        Self { class: qos::class(pod), cpu_millis }
    }
}

/// The weight of the group of a class, given the claims of all pods of this node that are to run. Guaranteed pods
/// stand beside these groups and not in one.
pub fn qos_cgroup_shares<'a>(
    class: QosClass,
    claims: impl IntoIterator<Item = &'a QosCpuClaim>,
) -> u64 {
    if class != QosClass::Burstable {
        return cpu::MIN_SHARES;
    }
    let burstable = claims.into_iter().filter(|claim| claim.class == class);
    let millis = burstable.map(|claim| claim.cpu_millis);
    cpu::shares(millis.fold(0, i64::saturating_add))
}

/// The values of the group of a class: its weight, and as many huge pages as its pods are given.
pub fn qos_cgroup<'a>(
    class: QosClass,
    claims: impl IntoIterator<Item = &'a QosCpuClaim>,
    node: &NodeResources,
) -> CgroupValues {
    let unlimited = |size: &u64| (hugepages::size_text(*size), UNLIMITED_HUGEPAGES);
    CgroupValues {
        shares: Some(qos_cgroup_shares(class, claims)),
        hugetlb: node.hugepage_sizes.iter().map(unlimited).collect(),
        ..CgroupValues::default()
    }
}
