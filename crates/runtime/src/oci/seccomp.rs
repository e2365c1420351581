//! The seccomp profile of a container.

use std::path::PathBuf;

use oarsman_cri_types::v1::SecurityProfile;
use oarsman_cri_types::v1::security_profile::ProfileType;
use oci_spec::runtime::{Capabilities, LinuxSeccomp};

use super::SpecError;

/// Which profile is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SeccompChoice {
    Unconfined,
    RuntimeDefault,
    Localhost(PathBuf),
}

/// A privileged container has none, and so has one that asks for none.
pub(crate) fn choice(profile: Option<&SecurityProfile>, privileged: bool) -> SeccompChoice {
    match profile.map(|profile| (profile.profile_type(), &profile.localhost_ref)) {
        _ if privileged => SeccompChoice::Unconfined,
        None | Some((ProfileType::Unconfined, _)) => SeccompChoice::Unconfined,
        Some((ProfileType::RuntimeDefault, _)) => SeccompChoice::RuntimeDefault,
        Some((ProfileType::Localhost, path)) => {
            SeccompChoice::Localhost(path.strip_prefix("localhost/").unwrap_or(path).into())
        }
    }
}

/// Makes or reads the profile.
pub(crate) fn profile(
    choice: &SeccompChoice,
    bounding: &Capabilities,
    kernel: (u32, u32),
) -> Result<Option<LinuxSeccomp>, SpecError> {
    match choice {
        SeccompChoice::Unconfined => Ok(None),
        SeccompChoice::RuntimeDefault => {
            Ok(Some(oarsman_shim::seccomp::runtime_default(bounding, kernel)?))
        }
        SeccompChoice::Localhost(path) => {
            let failed = |source| SpecError::SeccompFile { path: path.clone(), source };
            let text = std::fs::read(path).map_err(failed)?;
            Ok(Some(oarsman_shim::seccomp::parse(&text)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_chosen_by_its_type() {
        let of = |kind: ProfileType, path: &str| SecurityProfile {
            profile_type: kind.into(),
            localhost_ref: path.to_owned(),
        };
        let local = of(ProfileType::Localhost, "/var/lib/kubelet/seccomp/a.json");
        let rows = [
            (None, SeccompChoice::Unconfined),
            (Some(of(ProfileType::RuntimeDefault, "")), SeccompChoice::RuntimeDefault),
            (Some(of(ProfileType::Unconfined, "")), SeccompChoice::Unconfined),
            (
                Some(local.clone()),
                SeccompChoice::Localhost("/var/lib/kubelet/seccomp/a.json".into()),
            ),
        ];
        for (asked, wanted) in rows {
            assert_eq!(choice(asked.as_ref(), false), wanted);
            assert_eq!(choice(asked.as_ref(), true), SeccompChoice::Unconfined);
        }
        let missing = profile(&choice(Some(&local), false), &Capabilities::default(), (6, 1));
        assert!(missing.unwrap_err().to_string().contains("a.json"));
    }
}
