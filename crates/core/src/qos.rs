//! The quality-of-service class of a pod, which decides the order of eviction and the OOM score.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use crate::pod::PodExt;
use crate::quantity::Quantity;

/// How much of what it uses a pod has been promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QosClass {
    /// It asked for nothing.
    BestEffort,
    /// It asked for something, and may use more than that or has not bounded itself.
    Burstable,
    /// Every container bounded itself, and all it may use is promised.
    Guaranteed,
}

impl QosClass {
    /// The class as the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BestEffort => "BestEffort",
            Self::Burstable => "Burstable",
            Self::Guaranteed => "Guaranteed",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [Self::BestEffort, Self::Burstable, Self::Guaranteed];
        all.into_iter().find(|class| class.as_str() == text)
    }
}

impl fmt::Display for QosClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The pod's class: what its status says, since a class never changes, or else what its spec asks for.
pub fn class(pod: &Pod) -> QosClass {
    let recorded = pod.status.as_ref().and_then(|status| status.qos_class.as_deref());
    recorded.and_then(QosClass::parse).unwrap_or_else(|| computed(pod))
}

/// The class by the spec alone. Resources of the pod as a whole replace those of its containers.
fn computed(pod: &Pod) -> QosClass {
    match pod.spec().and_then(|spec| spec.resources.as_ref()) {
        Some(resources) => QosRequests::of(resources).class(),
        None => of_containers(pod).class(),
    }
}

fn of_containers(pod: &Pod) -> QosRequests {
    let unset = ResourceRequirements::default();
    let containers = pod.regular().iter().chain(pod.init());
    let resources = containers.map(|container| container.resources.as_ref().unwrap_or(&unset));
    resources.map(QosRequests::of).reduce(|one, other| one.plus(&other)).unwrap_or_default()
}

type QosAmounts = BTreeMap<&'static str, Quantity>;

/// What some containers ask for, of the two resources that make a class.
#[derive(Debug, Default)]
struct QosRequests {
    requests: QosAmounts,
    limits: QosAmounts,
    /// Whether each of them has a limit on both.
    all_bounded: bool,
}

impl QosRequests {
    fn of(resources: &ResourceRequirements) -> Self {
        let requests = amounts(resources.requests.as_ref());
        let limits = amounts(resources.limits.as_ref());
        let all_bounded = limits.len() == COUNTED.len();
        Self { requests, limits, all_bounded }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            requests: sum(&self.requests, &other.requests),
            limits: sum(&self.limits, &other.limits),
            all_bounded: self.all_bounded && other.all_bounded,
        }
    }

    fn class(&self) -> QosClass {
        if self.requests.is_empty() && self.limits.is_empty() {
            QosClass::BestEffort
        } else if self.all_bounded && self.requests == self.limits {
            QosClass::Guaranteed
        } else {
            QosClass::Burstable
        }
    }
}

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// The amounts that count. Nothing of a resource is as good as not naming it.
fn amounts(of: Option<&BTreeMap<String, WireQuantity>>) -> QosAmounts {
    let amount = |name: &str| of?.get(name).and_then(|wire| Quantity::try_from(wire).ok());
    let named = COUNTED.into_iter().filter_map(|name| Some((name, amount(name)?)));
    named.filter(|(_, amount)| *amount > Quantity::ZERO).collect()
}

fn sum(one: &QosAmounts, other: &QosAmounts) -> QosAmounts {
    let names: BTreeSet<_> = one.keys().chain(other.keys()).copied().collect();
    let of = |amounts: &QosAmounts, name| amounts.get(name).cloned().unwrap_or_default();
    names.into_iter().map(|name| (name, of(one, name).plus(&of(other, name)))).collect()
}

#[cfg(test)]
mod tests;
