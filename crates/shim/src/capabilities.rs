//! Capabilities that this process holds, and the sets of a spec as far as they are held.

use std::io;

use oci_spec::runtime::{Capabilities, Capability};
use rustix::thread::{CapabilitySet, capabilities, capability_is_in_bounding_set};

/// The capability of that name in the kernel's numbering.
pub(crate) fn bit(capability: Capability) -> CapabilitySet {
    CapabilitySet::from_name(&capability.to_string()).unwrap_or(CapabilitySet::empty())
}

/// What this process may give to a container: permitted to it and in its bounding set.
pub(crate) fn held() -> io::Result<CapabilitySet> {
    let permitted = capabilities(None)?.permitted;
    let bounded = |one: &CapabilitySet| capability_is_in_bounding_set(*one).unwrap_or(false);
    Ok(permitted.iter().filter(bounded).collect())
}

/// As OCI names them.
pub(crate) fn named(set: CapabilitySet) -> Capabilities {
    set.iter_names().filter_map(|(name, _)| name.parse().ok()).collect()
}

/// As the kernel numbers them, those that are held.
pub(crate) fn numbered(wanted: Option<&Capabilities>, held: CapabilitySet) -> CapabilitySet {
    let wanted: CapabilitySet = wanted.into_iter().flatten().map(|one| bit(*one)).collect();
    wanted & held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_has_a_name_and_a_number() {
        let all = CapabilitySet::all().iter_names().map(|(_, one)| one).collect();
        let names = named(all);
        assert_eq!(names.len(), 41);
        assert_eq!(numbered(Some(&names), all), all);
        assert_eq!(bit(Capability::SysAdmin), CapabilitySet::SYS_ADMIN);
        assert_eq!(numbered(Some(&names), CapabilitySet::CHOWN), CapabilitySet::CHOWN);
        assert_eq!(numbered(None, all), CapabilitySet::empty());
    }
}
