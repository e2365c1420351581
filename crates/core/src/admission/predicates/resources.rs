//! Whether the node has enough of every resource.

use k8s_openapi::api::core::v1::Pod;

use crate::admission::node::{AdmissionNode, NodeObjectState};
use crate::quantity::Quantity;
use crate::resources::amounts::ResourceList;
use crate::resources::{hugepages, pod_requests};

const PODS: &str = "pods";
const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const STORAGE: &str = "ephemeral-storage";

/// A resource of which too little is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::admission) struct InsufficientResource {
    /// The name of the resource that is short.
    pub(in crate::admission) resource: String,
    /// What the pod asks for: CPU in thousandths, everything else in units.
    pub(in crate::admission) requested: i64,
    /// What the other pods asked for.
    pub(in crate::admission) used: i64,
    /// What there is for pods.
    pub(in crate::admission) capacity: i64,
}

impl InsufficientResource {
    /// The message of the Go kubelet, which tools parse.
    pub(in crate::admission) fn message(&self) -> String {
        let Self { resource, requested, used, capacity } = self;
        format!(
            "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
        )
    }

    /// How much is missing.
    pub(in crate::admission) fn shortfall(&self) -> i64 {
        self.requested.saturating_sub(self.capacity.saturating_sub(self.used))
    }
}

/// The resources that the pod does not fit in: pods, CPU, memory, ephemeral storage, then all others by name.
pub(super) fn insufficient(
    pod: &Pod,
    others: &[&Pod],
    node: &AdmissionNode,
) -> Vec<InsufficientResource> {
    let own = pod_requests(pod);
    let used: Vec<ResourceList> = others.iter().map(|other| pod_requests(other)).collect();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let check = |name: &str| {
        let (requested, used) = match name {
            PODS => (1, count(others.len())),
            _ => (amount(name, &own), used.iter().map(|pod| amount(name, pod)).sum()),
        };
        let capacity = capacity(node, name)?;
        let missing = InsufficientResource { resource: name.to_owned(), requested, used, capacity };
        (requested > 0 && missing.shortfall() > 0).then_some(missing)
    };
    let first = [PODS, CPU, MEMORY, STORAGE];
    let rest = own.keys().map(String::as_str).filter(|name| !first.contains(name));
    first.into_iter().chain(rest).filter_map(check).collect()
}

/// What a pod asks for of a resource, as the numbers of a message count it.
pub(in crate::admission) fn request_of(pod: &Pod, name: &str) -> i64 {
    if name == PODS { 1 } else { amount(name, &pod_requests(pod)) }
}

fn amount(name: &str, of: &ResourceList) -> i64 {
    of.get(name).map_or(0, |amount| counted(name, amount))
}

fn counted(name: &str, amount: &Quantity) -> i64 {
    if name == CPU { amount.millis() } else { amount.units() }
}

/// What the node has for pods; none when the resource is not counted here.
fn capacity(node: &AdmissionNode, name: &str) -> Option<i64> {
    let is_read = node.object_state != NodeObjectState::Unread;
    match node.allocatable.get(name) {
        Some(amount) => Some(counted(name, amount)),
        // Devices that no plugin serves here, and pages that the machine does not have.
        None if name.contains('/') => is_read.then_some(0),
        None => hugepages::is_resource(name).then_some(0),
    }
}
