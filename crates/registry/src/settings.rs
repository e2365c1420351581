//! What the caller decides about registries.

use std::path::PathBuf;
use std::time::Duration;

use crate::proxies::ProxySettings;

/// What the caller decides about registries.
#[derive(Clone, Debug)]
pub struct RegistrySettings {
    /// Directories that hold one for each registry, with its `hosts.toml` or its certificates, as containerd's and Docker's `certs.d`; the
    /// first one that has the registry counts.
    pub hosts_directories: Vec<PathBuf>,
    /// Which proxies are used for which hosts.
    pub proxies: ProxySettings,
    /// How long what may take.
    pub limits: TransferLimits,
}

impl RegistrySettings {
    /// The directories where the configurations of containerd and Docker are, too, and the proxies of the environment.
    pub fn of_machine() -> Self {
        let directories =
            ["/etc/oarsman/certs.d", "/etc/containerd/certs.d", "/etc/docker/certs.d"];
        Self {
            hosts_directories: directories.iter().map(PathBuf::from).collect(),
            proxies: ProxySettings::of_environment(),
            limits: TransferLimits::default(),
        }
    }
}

/// How long what may take. There is no limit for a whole download: one that goes on is not given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferLimits {
    /// From looking up the name to the end of the TLS handshake.
    pub connect: Duration,
    /// From the request to the head of the response.
    pub response: Duration,
    /// Between two pieces of a body.
    pub stall: Duration,
    /// Within each window of this length there have to come `least_bytes`.
    pub window: Duration,
    /// See `window`.
    pub least_bytes: u64,
    /// The first pause before a download that broke off goes on; it doubles while nothing comes.
    pub retry_pause: Duration,
    /// How often in a row a download may break off without having got further.
    pub retries: u32,
}

impl Default for TransferLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            response: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            window: Duration::from_secs(60),
            least_bytes: 64 * 1024,
            retry_pause: Duration::from_millis(250),
            retries: 5,
        }
    }
}
