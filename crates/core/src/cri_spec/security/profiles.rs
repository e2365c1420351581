//! Profiles of seccomp and AppArmor.

use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_cri_types::v1::security_profile::ProfileType;
use oarsman_cri_types::v1::{LinuxContainerSecurityContext, SecurityProfile};

use super::pod_context;
use crate::api::create::container_app_armor;
use crate::cri_spec::error::ConfigError;
use crate::cri_spec::node_context::NodeContext;
use crate::cri_spec::paths;

/// Which system calls a container may make. In the messages an unset profile, an empty one and one that confines
/// nothing look much alike; here they do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seccomp {
    RuntimeDefault,
    Unconfined,
    File(PathBuf),
}

impl Seccomp {
    pub(super) fn for_cri(self) -> SecurityProfile {
        match self {
            Self::RuntimeDefault => profile(ProfileType::RuntimeDefault, ""),
            Self::Unconfined => profile(ProfileType::Unconfined, ""),
            Self::File(path) => profile(ProfileType::Localhost, &path.to_string_lossy()),
        }
    }
}

/// The container's profile, else the pod's, else the node's default.
pub(super) fn seccomp(
    pod: &Pod,
    spec: &Container,
    node: &NodeContext<'_>,
) -> Result<Seccomp, ConfigError> {
    let own = spec.security_context.as_ref().and_then(|c| c.seccomp_profile.as_ref());
    let shared = || pod_context(pod).and_then(|c| c.seccomp_profile.as_ref());
    let Some(wanted) = own.or_else(shared) else {
        return Ok(match node.settings.seccomp_default {
            true => Seccomp::RuntimeDefault,
            false => Seccomp::Unconfined,
        });
    };
    let field = "seccompProfile";
    match (wanted.type_.as_str(), wanted.localhost_profile.as_deref()) {
        ("RuntimeDefault", _) => Ok(Seccomp::RuntimeDefault),
        ("Unconfined", _) => Ok(Seccomp::Unconfined),
        ("Localhost", None | Some("")) => Err(ConfigError::NoProfileName { field }),
        ("Localhost", Some(name)) if !is_below_directory(name) => {
            Err(ConfigError::ProfilePath { field, value: name.to_owned() })
        }
        ("Localhost", Some(name)) => {
            Ok(Seccomp::File(paths::seccomp_profiles(Path::new(node.root)).join(name)))
        }
        (other, _) => Err(ConfigError::Unknown { field, value: other.to_owned() }),
    }
}

/// The API server checks this too, but not of a pod that was written before it did.
fn is_below_directory(name: &str) -> bool {
    let path = Path::new(name);
    path.is_relative() && !path.components().any(|part| part == Component::ParentDir)
}

/// Sets the container's profile, else that of its annotation, else the pod's: for new runtimes and for old ones.
pub(super) fn set_app_armor(
    made: &mut LinuxContainerSecurityContext,
    pod: &Pod,
    spec: &Container,
) -> Result<(), ConfigError> {
    let Some(wanted) = container_app_armor(pod, spec) else { return Ok(()) };
    let field = "appArmorProfile";
    let (profile, old) = match (wanted.type_.as_str(), wanted.localhost_profile.as_deref()) {
        ("RuntimeDefault", _) => {
            (profile(ProfileType::RuntimeDefault, ""), "runtime/default".to_owned())
        }
        ("Unconfined", _) => (profile(ProfileType::Unconfined, ""), "unconfined".to_owned()),
        ("Localhost", None | Some("")) => return Err(ConfigError::NoProfileName { field }),
        ("Localhost", Some(name)) => {
            (profile(ProfileType::Localhost, name), format!("localhost/{name}"))
        }
        (other, _) => return Err(ConfigError::Unknown { field, value: other.to_owned() }),
    };
    made.apparmor = Some(profile);
    #[expect(deprecated, reason = "runtimes that predate the new field read the old one")]
    {
        made.apparmor_profile = old;
    }
    Ok(())
}

fn profile(kind: ProfileType, name: &str) -> SecurityProfile {
    SecurityProfile { profile_type: kind.into(), localhost_ref: name.to_owned() }
}
