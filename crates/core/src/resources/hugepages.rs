//! Huge pages: their sizes as the API, the kernel's files and its directories spell them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use crate::quantity::{Format, Quantity};
use crate::resources::amounts::ResourceList;
use crate::resources::totals::pod_requests;

/// What a resource of huge pages is called, before the size of the page.
const PREFIX: &str = "hugepages-";

/// The bytes of one page, by the name of the resource: `hugepages-2Mi`.
pub fn size_of_resource(name: &str) -> Option<u64> {
    let size = Quantity::parse(name.strip_prefix(PREFIX)?).ok()?;
    u64::try_from(size.units()).ok().filter(|bytes| *bytes > 0)
}

/// The resource of pages of so many bytes: `hugepages-2Mi`.
pub fn resource_of_size(bytes: u64) -> String {
    let size = i64::try_from(bytes).unwrap_or(i64::MAX);
    format!("{PREFIX}{}", Quantity::from_units(size, Format::BinarySi))
}

/// Whether that is a resource of huge pages.
pub fn is_resource(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The bytes of one page, by the name of a directory in `/sys/kernel/mm/hugepages`:
/// `hugepages-2048kB`.
pub fn size_of_directory(name: &str) -> Option<u64> {
    let kilobytes: u64 = name.strip_prefix(PREFIX)?.strip_suffix("kB")?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The size as control files have it in their names: `2MB`, `1GB`.
pub fn size_text(bytes: u64) -> String {
    let mut units = ["B", "KB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    let mut amount = bytes;
    while amount >= 1024 && amount.is_multiple_of(1024) {
        let Some(larger) = units.next() else { break };
        (amount, unit) = (amount / 1024, larger);
    }
    format!("{amount}{unit}")
}

/// The sizes of pages in bytes that a pod asks for.
pub fn sizes_of_pod(pod: &Pod) -> Vec<u64> {
    by_size(&pod_requests(pod)).into_keys().collect()
}

/// The bytes of each size of page among some amounts.
pub(super) fn by_size(amounts: &ResourceList) -> BTreeMap<u64, u64> {
    let bytes = |amount: &Quantity| u64::try_from(amount.units()).unwrap_or_default();
    amounts
        .iter()
        .filter_map(|(name, amount)| Some((size_of_resource(name)?, bytes(amount))))
        .collect()
}

/// A limit for every size the machine has, nothing of those that are not `asked` for.
pub(super) fn limits(sizes: &[u64], asked: &BTreeMap<u64, u64>) -> BTreeMap<String, u64> {
    let limit = |size: &u64| (size_text(*size), asked.get(size).copied().unwrap_or_default());
    sizes.iter().map(limit).collect()
}
