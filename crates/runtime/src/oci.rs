//! A container's CRI configuration as an OCI spec: pure conversions, and the few looks at the host and the image that they need.

pub(crate) mod capabilities;
pub(crate) mod devices;
pub(crate) mod mounts;
pub(crate) mod namespaces;
pub(crate) mod process;
pub(crate) mod resolv_conf;
pub(crate) mod resources;
pub(crate) mod seccomp;
pub(crate) mod security_modules;
pub(crate) mod signals;
pub(crate) mod spec;
pub(crate) mod sysctls;
pub(crate) mod user_namespace;
pub(crate) mod users;

use std::io;
use std::path::PathBuf;

use oci_spec::OciSpecError;

/// Why a configuration cannot become a container.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpecError {
    #[error("there is no command: neither the container nor its image names one")]
    NoCommand,
    #[error("the environment variable {name} is not UTF-8")]
    Environment { name: String },
    #[error("the image has no user {user:?} in /etc/passwd")]
    NoUser { user: String },
    #[error("the image has no group {group:?} in /etc/group")]
    NoGroup { group: String },
    #[error("the group {group} is asked for without a user")]
    GroupWithoutUser { group: i64 },
    #[error("there is no capability {name:?}")]
    Capability { name: String },
    #[error("the mount at {path:?} is not possible: {why}")]
    Mount { path: String, why: &'static str },
    #[error("the device {} cannot be used: {source}", .path.display())]
    Device { path: PathBuf, source: io::Error },
    #[error("the sysctl {name} cannot be set for a pod: {why}")]
    Sysctl { name: String, why: &'static str },
    #[error("the seccomp profile {} cannot be read: {source}", .path.display())]
    SeccompFile { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Seccomp(#[from] oarsman_shim::seccomp::SeccompError),
    #[error("the pod's user namespace is not possible: {why}")]
    UserNamespace { why: &'static str },
    #[error("AppArmor is not enabled on this node, so the profile {profile:?} cannot be used")]
    NoAppArmor { profile: String },
    #[error(
        "the AppArmor profile {profile:?} is not loaded on this node: load it with apparmor_parser, or ask for Unconfined"
    )]
    ProfileNotLoaded { profile: String },
    #[error(
        "SELinux options cannot be applied by the embedded runtime: remove seLinuxOptions, or run the pod on another runtime"
    )]
    SeLinux,
    #[error("{value} is not possible for {field}")]
    Resource { field: &'static str, value: i64 },
    #[error("the spec cannot be built: {0}")]
    Build(#[from] OciSpecError),
}
