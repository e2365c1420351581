//! By what a sandbox is connected: CNI plugins or the built-in bridge.

use std::path::{Path, PathBuf};

use oarsman_cni::{CniError, CniNetwork, CniSettings};

/// By what pods are connected, as the caller decides it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodNetworkChoice {
    /// By what sandboxes are connected from now on. What connected a sandbox disconnects it, whatever is chosen later.
    pub mode: PodNetworkMode,
    /// Where CNI configurations and plugins are.
    pub cni: CniSettings,
    /// Whether plugins are told at the start to remove all that belongs to none of our sandboxes: only where no other runtime uses the same network.
    pub collects_garbage: bool,
}

/// By what sandboxes are connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodNetworkMode {
    /// The built-in bridge.
    #[default]
    Bridge,
    /// CNI plugins. Without a configuration there is no network.
    Cni,
    /// CNI plugins when a configuration is there, else the built-in bridge.
    CniIfConfigured,
}

/// By what a sandbox is connected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NetworkPlan {
    Bridge,
    Plugins(Box<CniNetwork>),
}

/// Why a sandbox cannot be connected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoNetwork {
    #[error("cni plugin not initialized: no network is configured in {}", .0.display())]
    NotConfigured(PathBuf),
    #[error(
        "cni plugin not initialized: the configuration in {} is gone, by which other pods are connected; they keep the bridge from being used",
        .0.display()
    )]
    Removed(PathBuf),
    #[error("cni plugin not initialized: {0}")]
    Unusable(#[from] Box<CniError>),
}

/// What to use for another sandbox. Where plugins have connected some, a configuration that is gone is one that is just being replaced: pods on the
/// bridge could not reach them.
pub(crate) fn choose(
    mode: PodNetworkMode,
    configured: Option<CniNetwork>,
    has_attachments: bool,
    directory: &Path,
) -> Result<NetworkPlan, NoNetwork> {
    match (mode, configured) {
        (PodNetworkMode::Bridge, _) => Ok(NetworkPlan::Bridge),
        (_, Some(network)) => Ok(NetworkPlan::Plugins(Box::new(network))),
        (PodNetworkMode::Cni, None) => Err(NoNetwork::NotConfigured(directory.to_owned())),
        (PodNetworkMode::CniIfConfigured, None) if has_attachments => {
            Err(NoNetwork::Removed(directory.to_owned()))
        }
        (PodNetworkMode::CniIfConfigured, None) => Ok(NetworkPlan::Bridge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_used_by_mode_configuration_and_what_is_connected() {
        use PodNetworkMode::{Bridge, Cni, CniIfConfigured};
        let network = CniNetwork::parse_single(br#"{"cniVersion":"1.0.0","name":"n","type":"t"}"#);
        let network = network.unwrap();
        let rows = [
            (Bridge, false, false, "bridge"),
            (Bridge, true, true, "bridge"),
            (Cni, true, false, "plugins"),
            (Cni, false, false, "no network is configured in /net.d"),
            (Cni, false, true, "no network is configured in /net.d"),
            (CniIfConfigured, true, false, "plugins"),
            (CniIfConfigured, true, true, "plugins"),
            (CniIfConfigured, false, false, "bridge"),
            (CniIfConfigured, false, true, "the configuration in /net.d is gone"),
        ];
        for (mode, is_configured, has_attachments, wanted) in rows {
            let configured = is_configured.then(|| network.clone());
            let found = match choose(mode, configured, has_attachments, Path::new("/net.d")) {
                Ok(NetworkPlan::Bridge) => "bridge".to_owned(),
                Ok(NetworkPlan::Plugins(found)) => {
                    assert_eq!(*found, network);
                    "plugins".to_owned()
                }
                Err(error) => error.to_string(),
            };
            assert!(found.contains(wanted), "{mode:?} {is_configured} {has_attachments}: {found}");
        }
    }
}
