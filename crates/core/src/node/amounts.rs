//! How much a node has, and how much of that is for pods.

use std::collections::BTreeMap;

use super::{MachineInfo, NodeProfile};
use crate::quantity::{Format, Quantity};
use crate::resources::hugepages;

/// Amounts by the name of the resource.
pub type NodeResourceList = BTreeMap<String, Quantity>;

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const PODS: &str = "pods";
const STORAGE: &str = "ephemeral-storage";

/// What is kept from pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReservedResources {
    /// `systemReserved` of the configuration.
    pub system: NodeResourceList,
    /// For the agent and the runtime.
    pub kube: NodeResourceList,
    /// How many CPUs are reserved for the system alone (`reservedSystemCPUs`); they replace the CPU reserved above.
    pub cpus: Option<u32>,
    /// How much memory must stay free, or pods are evicted.
    pub free_memory: Option<EvictionThreshold>,
    /// How much disk must stay free, or pods are evicted.
    pub free_disk: Option<EvictionThreshold>,
}

/// An amount, or a part of all there is.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionThreshold {
    /// An absolute amount.
    Amount(Quantity),
    /// So many hundredths of the whole.
    Percent(f32),
}

impl EvictionThreshold {
    fn of(&self, whole: &Quantity) -> Quantity {
        match self {
            Self::Amount(amount) => amount.clone(),
            Self::Percent(percent) => {
                Quantity::from_units(part(whole.units(), percent / 100.0), Format::BinarySi)
            }
        }
    }
}

/// In the precision of the Go kubelet, so that both tell the same number.
#[expect(clippy::cast_possible_truncation, reason = "a part of a whole number fits where it did")]
#[expect(clippy::cast_precision_loss, reason = "disks are smaller than 2^53 bytes")]
fn part(whole: i64, part: f32) -> i64 {
    (whole as f64 * f64::from(part)) as i64
}

/// All that the node has, of what every node has.
pub fn capacity(profile: &NodeProfile, machine: &MachineInfo) -> NodeResourceList {
    let bytes = |bytes: u64| {
        Quantity::from_units(i64::try_from(bytes).unwrap_or(i64::MAX), Format::BinarySi)
    };
    let count = |count: u32| Quantity::from_units(count.into(), Format::DecimalSi);
    let mut amounts = NodeResourceList::from([
        (CPU.to_owned(), count(machine.cpus)),
        (MEMORY.to_owned(), bytes(machine.memory)),
        (PODS.to_owned(), count(pods(profile, machine))),
    ]);
    let pages = machine.hugepages.iter();
    let pages =
        pages.map(|(size, count)| (hugepages::resource_of_size(*size), bytes(size * count)));
    amounts.extend(pages);
    let disk = machine.disk.filter(|_| profile.counts_storage);
    amounts.extend(disk.map(|disk| (STORAGE.to_owned(), bytes(disk))));
    amounts
}

fn pods(profile: &NodeProfile, machine: &MachineInfo) -> u32 {
    let by_cores = profile.pods_per_core.map(|each| each.saturating_mul(machine.cpus));
    by_cores.map_or(profile.max_pods, |pods| pods.min(profile.max_pods))
}

/// The allocatable part of the capacity, including resources that other components have added.
pub fn allocatable(reserved: &ReservedResources, capacity: &NodeResourceList) -> NodeResourceList {
    let kept = |name: &str, whole: &Quantity| reserved.of(name, whole);
    let left = capacity
        .iter()
        .map(|(name, whole)| (name.clone(), whole.minus(&kept(name, whole)).or_nothing()));
    let mut left: NodeResourceList = left.collect();
    let pages = capacity.iter().filter(|(name, _)| hugepages::is_resource(name));
    let pages = pages.fold(Quantity::ZERO, |sum, (_, pages)| sum.plus(pages));
    if let Some(memory) = left.get_mut(MEMORY).filter(|_| !pages.is_zero()) {
        *memory = memory.minus(&pages).or_nothing();
    }
    left
}

/// What every node must have, or it is not ready.
pub fn missing(counts_storage: bool, has: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let storage = counts_storage.then_some(STORAGE);
    [CPU, MEMORY, PODS].into_iter().chain(storage).filter(|name| !has(name)).collect()
}

impl ReservedResources {
    /// How much of a resource is kept from pods.
    fn of(&self, name: &str, whole: &Quantity) -> Quantity {
        let amount_of =
            |amounts: &NodeResourceList| amounts.get(name).cloned().unwrap_or(Quantity::ZERO);
        let reserved = match self.cpus.filter(|_| name == CPU) {
            Some(cpus) => Quantity::from_units(cpus.into(), Format::DecimalSi),
            None => amount_of(&self.system).plus(&amount_of(&self.kube)),
        };
        let free = match name {
            MEMORY => self.free_memory.as_ref(),
            STORAGE => self.free_disk.as_ref(),
            _ => None,
        };
        reserved.plus(&free.map_or(Quantity::ZERO, |level| level.of(whole)))
    }
}
