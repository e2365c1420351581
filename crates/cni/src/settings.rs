//! What the caller decides about CNI.

use std::path::PathBuf;
use std::time::Duration;

/// Where containerd looks, too.
const CONFIGURATION: &str = "/etc/cni/net.d";
const PLUGINS: &str = "/opt/cni/bin";
/// Less than the two minutes that kubelets wait for a call by default, so that the error names the plugin.
const DEADLINE: Duration = Duration::from_secs(110);
/// A plugin that is asked whether it is ready has nothing to set up.
const STATUS_DEADLINE: Duration = Duration::from_secs(10);

/// What the caller decides about CNI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CniSettings {
    /// The directory of network configurations, the first of which is used.
    pub configuration: PathBuf,
    /// The directories in which plugins are looked for, one after the other.
    pub plugins: Vec<PathBuf>,
    /// How long all plugins of a network have for one operation.
    pub deadline: Duration,
    /// How long they have to say whether they are ready.
    pub status_deadline: Duration,
}

impl Default for CniSettings {
    fn default() -> Self {
        Self {
            configuration: CONFIGURATION.into(),
            plugins: vec![PLUGINS.into()],
            deadline: DEADLINE,
            status_deadline: STATUS_DEADLINE,
        }
    }
}
