//! Where a node is reached.

use k8s_openapi::api::core::v1::NodeAddress;

use super::NodeProfile;

/// What a cloud is told of the addresses that were given.
pub(super) const PROVIDED: &str = "alpha.kubernetes.io/provided-node-ip";

/// The addresses of a node that had those.
pub(super) fn next(profile: &NodeProfile, before: &[NodeAddress]) -> Vec<NodeAddress> {
    // What the cloud says goes before what we know.
    if profile.has_cloud && !before.is_empty() {
        return before.to_vec();
    }
    let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
    let knows_nothing = profile.has_cloud && profile.given_addresses.is_empty();
    let internal = profile.addresses.iter().filter(|_| !knows_nothing);
    let internal = internal.map(|ip| address("InternalIP", ip.to_string()));
    internal.chain([address("Hostname", profile.name.clone())]).collect()
}

/// The addresses for the cloud to find the node by; none when there is no cloud or nothing was given.
pub(super) fn provided(profile: &NodeProfile) -> Option<String> {
    let given: Vec<String> = profile.given_addresses.iter().map(ToString::to_string).collect();
    Some(given.join(",")).filter(|given| profile.has_cloud && !given.is_empty())
}
