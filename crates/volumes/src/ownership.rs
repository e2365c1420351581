//! Giving a volume to the pod's group, when the pod names one.

use std::io;
use std::path::Path;

use k8s_openapi::api::core::v1::{Pod, Volume};
use oarsman_core::pod::PodExt;
use oarsman_host::group_ownership;

use crate::plugin::VolumeToSetUp;

/// The group that the pod's volumes belong to.
pub(crate) fn fs_group(pod: &Pod) -> io::Result<Option<u32>> {
    let security = pod.spec().and_then(|spec| spec.security_context.as_ref());
    let group = security.and_then(|context| context.fs_group);
    group.map(|group| u32::try_from(group).map_err(io::Error::other)).transpose()
}

/// Gives a volume to the group, with all that is in it.
pub(crate) fn set_volume_ownership(mount: &VolumeToSetUp<'_>, path: &Path) -> io::Result<()> {
    let Some(group) = fs_group(mount.pod)? else { return Ok(()) };
    let policy = FsGroupChangePolicy::of(mount.pod, mount.volume);
    if policy == FsGroupChangePolicy::OnRootMismatch && group_ownership::belongs_to(path, group)? {
        return Ok(());
    }
    group_ownership::give_tree(path, group)
}

/// When the files of a volume are given to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FsGroupChangePolicy {
    /// Every time the volume is set up.
    Always,
    /// When its top does not belong to the group.
    OnRootMismatch,
}

impl FsGroupChangePolicy {
    /// A volume that lives as long as its pod was empty when its top was given to the group, and what is made in it since has the group by
    /// the directory's own bit: a restart of the agent changes no file of a pod that runs.
    fn of(pod: &Pod, volume: &Volume) -> Self {
        let security = pod.spec().and_then(|spec| spec.security_context.as_ref());
        let policy = security.and_then(|context| context.fs_group_change_policy.as_deref());
        let lives_with_pod = volume.empty_dir.is_some()
            || volume.config_map.is_some()
            || volume.secret.is_some()
            || volume.projected.is_some()
            || volume.downward_api.is_some();
        match policy {
            Some("OnRootMismatch") => Self::OnRootMismatch,
            _ if lives_with_pod => Self::OnRootMismatch,
            _ => Self::Always,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PodSecurityContext, PodSpec};

    use super::*;

    #[test]
    fn files_are_changed_always_unless_the_pod_says_otherwise_or_the_volume_is_its_own() {
        use FsGroupChangePolicy::{Always, OnRootMismatch};
        let own = Volume { empty_dir: Some(Default::default()), ..Volume::default() };
        let other =
            Volume { persistent_volume_claim: Some(Default::default()), ..Volume::default() };
        let rows = [
            (None, &other, Always),
            (Some("Always"), &other, Always),
            (Some("OnRootMismatch"), &other, OnRootMismatch),
            (None, &own, OnRootMismatch),
            (Some("Always"), &own, OnRootMismatch),
        ];
        for (policy, volume, expected) in rows {
            let context = PodSecurityContext {
                fs_group_change_policy: policy.map(str::to_owned),
                ..PodSecurityContext::default()
            };
            let spec = PodSpec { security_context: Some(context), ..PodSpec::default() };
            let pod = Pod { spec: Some(spec), ..Pod::default() };
            assert_eq!(FsGroupChangePolicy::of(&pod, volume), expected, "{policy:?}");
        }
    }
}
