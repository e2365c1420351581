//! What AppArmor and SELinux of the node do for a container. A confinement that was asked for and cannot be had is an error, and never left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use oarsman_cri_types::v1::LinuxContainerSecurityContext;
use oarsman_cri_types::v1::security_profile::ProfileType;

use super::SpecError;

/// The profile of containers that ask for the default one: packaging/apparmor has it.
const DEFAULT_PROFILE: &str = "oarsman-default";
const APPARMOR_ENABLED: &str = "/sys/module/apparmor/parameters/enabled";
const APPARMOR_PROFILES: &str = "/sys/kernel/security/apparmor/profiles";
const SELINUX: &str = "/sys/fs/selinux/enforce";

/// The security modules of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecurityModules {
    /// The profiles that are loaded; none where AppArmor is off.
    apparmor: Option<BTreeSet<String>>,
    selinux: bool,
}

impl SecurityModules {
    /// Reads them. Blocks.
    pub(crate) fn read() -> Self {
        let is_on = fs::read(APPARMOR_ENABLED).is_ok_and(|text| text.starts_with(b"Y"));
        // Without the file no profile is known to be loaded, and what needs one is refused.
        let loaded = || profile_names(&fs::read_to_string(APPARMOR_PROFILES).unwrap_or_default());
        Self { apparmor: is_on.then(loaded), selinux: Path::new(SELINUX).exists() }
    }

    /// The AppArmor profile of a container; none for one that is not confined.
    pub(crate) fn apparmor_profile(
        &self,
        context: &LinuxContainerSecurityContext,
    ) -> Result<Option<String>, SpecError> {
        let asked = context.apparmor.as_ref();
        let kind = asked.map(|profile| (profile.profile_type(), &profile.localhost_ref));
        match (kind, &self.apparmor) {
            _ if context.privileged => Ok(None),
            (Some((ProfileType::Unconfined, _)), _) => Ok(None),
            (Some((ProfileType::Localhost, name)), loaded) => {
                let name = name.trim_start_matches("localhost/").to_owned();
                match loaded {
                    None => Err(SpecError::NoAppArmor { profile: name }),
                    Some(loaded) if loaded.contains(&name) => Ok(Some(name)),
                    Some(_) => Err(SpecError::ProfileNotLoaded { profile: name }),
                }
            }
            // Without AppArmor the default profile is none.
            (_, None) => Ok(None),
            (_, Some(loaded)) if loaded.contains(DEFAULT_PROFILE) => {
                Ok(Some(DEFAULT_PROFILE.to_owned()))
            }
            (Some(_), Some(_)) => {
                Err(SpecError::ProfileNotLoaded { profile: DEFAULT_PROFILE.to_owned() })
            }
            (None, Some(_)) => Ok(None),
        }
    }

    /// Refuses SELinux options where they would count.
    pub(crate) fn check_selinux(
        &self,
        context: &LinuxContainerSecurityContext,
    ) -> Result<(), SpecError> {
        let asked = context.selinux_options.as_ref().is_some_and(|options| {
            [&options.user, &options.role, &options.r#type, &options.level]
                .iter()
                .any(|part| !part.is_empty())
        });
        match asked && self.selinux {
            true => Err(SpecError::SeLinux),
            false => Ok(()),
        }
    }
}

/// The names in lines such as `name (enforce)`.
fn profile_names(text: &str) -> BTreeSet<String> {
    let name = |line: &str| line.rsplit_once(" (").map(|(name, _)| name.to_owned());
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use oarsman_cri_types::v1::{SeLinuxOption, SecurityProfile};

    use super::*;

    fn asks(kind: ProfileType, name: &str) -> LinuxContainerSecurityContext {
        let profile = SecurityProfile { profile_type: kind.into(), localhost_ref: name.to_owned() };
        LinuxContainerSecurityContext { apparmor: Some(profile), ..Default::default() }
    }

    fn with(profiles: &str) -> SecurityModules {
        SecurityModules { apparmor: Some(profile_names(profiles)), selinux: false }
    }

    #[test]
    fn a_profile_that_cannot_be_had_is_refused_and_never_left_out() {
        use ProfileType::{Localhost, RuntimeDefault, Unconfined};
        let off = SecurityModules::default();
        let (bare, ready) =
            (with("other (enforce)\n"), with("oarsman-default (enforce)\nmy one (complain)\n"));
        let none = LinuxContainerSecurityContext::default();
        let privileged =
            LinuxContainerSecurityContext { privileged: true, ..asks(RuntimeDefault, "") };
        let rows = [
            (&off, &none, Some(None)),
            (&off, &asks(RuntimeDefault, ""), Some(None)),
            (&off, &asks(Localhost, "localhost/other"), None),
            (&bare, &none, Some(None)),
            (&bare, &asks(RuntimeDefault, ""), None),
            (&bare, &asks(Localhost, "other"), Some(Some("other"))),
            (&bare, &asks(Localhost, "my one"), None),
            (&bare, &asks(Unconfined, ""), Some(None)),
            (&bare, &privileged, Some(None)),
            (&ready, &none, Some(Some("oarsman-default"))),
            (&ready, &asks(RuntimeDefault, ""), Some(Some("oarsman-default"))),
            (&ready, &asks(Localhost, "localhost/my one"), Some(Some("my one"))),
            (&ready, &asks(Unconfined, ""), Some(None)),
            (&ready, &privileged, Some(None)),
        ];
        for (modules, context, wanted) in rows {
            let found = modules.apparmor_profile(context).ok();
            let wanted = wanted.map(|profile| profile.map(str::to_owned));
            assert_eq!(found, wanted, "{modules:?} {context:?}");
        }
    }

    #[test]
    fn selinux_options_are_refused_where_they_count() {
        let of = |level: &str| LinuxContainerSecurityContext {
            selinux_options: Some(SeLinuxOption { level: level.to_owned(), ..Default::default() }),
            ..Default::default()
        };
        let on = SecurityModules { selinux: true, apparmor: None };
        let off = SecurityModules::default();
        for (modules, level, is_fine) in
            [(&on, "s0:c1", false), (&on, "", true), (&off, "s0:c1", true)]
        {
            assert_eq!(modules.check_selinux(&of(level)).is_ok(), is_fine, "{modules:?} {level}");
        }
    }
}
