//! The resources that a pod was given. A resize in place is not carried out on this node, so a running pod keeps them whatever its spec asks
//! for by now.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use crate::event::PodEvent;
use crate::quantity::Quantity;

/// The resources that a resize may change.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// What the condition `PodResizePending` and the event of a resize say.
pub const RESIZE_INFEASIBLE: &str = "In-place resize is not supported on this node: delete the pod and create it with the new resources";

/// The event of a resize; none for one that was answered before.
pub fn resize_event(pod: &Pod) -> Option<PodEvent> {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_answered = conditions.any(|condition| condition.type_ == "PodResizePending");
    (!is_answered).then(|| PodEvent::warning("ResizeInfeasible", RESIZE_INFEASIBLE))
}

type WireAmounts = BTreeMap<String, WireQuantity>;

/// What a pod was given, by container, and as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Allocation {
    containers: BTreeMap<String, ResourceRequirements>,
    pod: Option<ResourceRequirements>,
}

impl Allocation {
    /// What the spec asks for.
    pub(super) fn of_spec(pod: &Pod) -> Self {
        let containers = containers(pod)
            .map(|spec| (spec.name.clone(), spec.resources.clone().unwrap_or_default()));
        let of_pod = pod.spec.as_ref().and_then(|spec| spec.resources.clone());
        Self { containers: containers.collect(), pod: of_pod }
    }

    /// What the status says that the containers were given, as an agent before this one published it; of all others what the spec asks
    /// for.
    pub(super) fn of_status(pod: &Pod) -> Self {
        let mut allocation = Self::of_spec(pod);
        let status = pod.status.iter();
        let lists =
            status.flat_map(|status| [&status.container_statuses, &status.init_container_statuses]);
        for status in lists.flatten().flatten() {
            let known = allocation.containers.get_mut(&status.name);
            if let (Some(resources), Some(given)) = (known, given(status)) {
                take_over(resources, &given);
            }
        }
        allocation
    }

    /// The pod with these resources; none if it asks for no others.
    pub(super) fn applied_to(&self, pod: &Arc<Pod>) -> Option<Arc<Pod>> {
        let mut allocated = Pod::clone(pod);
        let mut differs = false;
        let spec = allocated.spec.as_mut()?;
        let init = spec.init_containers.iter_mut().flatten();
        for container in spec.containers.iter_mut().chain(init) {
            let Some(given) = self.containers.get(&container.name) else { continue };
            differs |= replace(&mut container.resources, given);
        }
        if let Some(given) = &self.pod {
            differs |= replace(&mut spec.resources, given);
        }
        differs.then(|| Arc::new(allocated))
    }
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.iter();
    spec.flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()))
}

/// What a container that was created has been given. The requests that were allocated are exact; those that a runtime reports are not.
fn given(status: &ContainerStatus) -> Option<ResourceRequirements> {
    status.container_id.as_ref()?;
    let resources = status.resources.clone()?;
    let requests = status.allocated_resources.clone().or(resources.requests);
    Some(ResourceRequirements { requests, limits: resources.limits, claims: None })
}

/// Sets the resources to those that were given. Returns whether that changed them.
fn replace(resources: &mut Option<ResourceRequirements>, given: &ResourceRequirements) -> bool {
    let mut changed = resources.clone().unwrap_or_default();
    let differs = take_over(&mut changed, given);
    if differs {
        *resources = Some(changed);
    }
    differs
}

fn take_over(resources: &mut ResourceRequirements, given: &ResourceRequirements) -> bool {
    let requests = take_over_amounts(&mut resources.requests, given.requests.as_ref());
    let limits = take_over_amounts(&mut resources.limits, given.limits.as_ref());
    requests || limits
}

fn take_over_amounts(amounts: &mut Option<WireAmounts>, given: Option<&WireAmounts>) -> bool {
    let mut differs = false;
    for name in RESIZABLE {
        let wanted = amounts.as_ref().and_then(|amounts| amounts.get(name));
        let given = given.and_then(|given| given.get(name));
        if is_same(wanted, given) {
            continue;
        }
        differs = true;
        let amounts = amounts.get_or_insert_default();
        match given {
            Some(given) => amounts.insert(name.to_owned(), given.clone()),
            None => amounts.remove(name),
        };
    }
    differs
}

/// Amounts may be spelled in several ways.
fn is_same(one: Option<&WireQuantity>, other: Option<&WireQuantity>) -> bool {
    let parse = |amount: &WireQuantity| Quantity::try_from(amount).ok();
    one == other || one.map(parse).zip(other.map(parse)).is_some_and(|(one, other)| one == other)
}
