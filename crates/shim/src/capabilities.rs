//! Capabilities that this process holds, and the sets of a spec as far as they are held.

use std::collections::HashSet;
use std::io;

use oci_spec::runtime::Capability;
use rustix::thread::{CapabilitySet, capabilities, capability_is_in_bounding_set};

/// The capability of that name in the kernel's numbering.
pub(crate) fn bit(capability: Capability) -> CapabilitySet {
    let name = capability.to_string();
    CapabilitySet::from_name(name.trim_start_matches("CAP_")).unwrap_or(CapabilitySet::empty())
}

/// What this process may give to a container: permitted to it and in its bounding set.
pub(crate) fn held() -> io::Result<CapabilitySet> {
    let permitted = capabilities(None)?.permitted;
    let bounded = |one: &CapabilitySet| capability_is_in_bounding_set(*one).unwrap_or(false);
    Ok(permitted.iter().filter(bounded).collect())
}

/// As OCI names them.
pub(crate) fn named(set: CapabilitySet) -> HashSet<Capability> {
    let names = set.iter_names().map(|(name, _)| format!("CAP_{name}"));
    names.filter_map(|name| name.parse().ok()).collect()
}

/// As the kernel numbers them, those that are held.
pub(crate) fn numbered(wanted: Option<&HashSet<Capability>>, held: CapabilitySet) -> CapabilitySet {
    let wanted: CapabilitySet = wanted.into_iter().flatten().map(|one| bit(*one)).collect();
    wanted & held
}
