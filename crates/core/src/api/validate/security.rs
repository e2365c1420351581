//! Who processes run as and what they may do.

use k8s_openapi::api::core::v1::{PodSecurityContext, PodSpec, SecurityContext};

use super::context::{ContainerPosition, PodValidationContext};
use super::{names, profiles, sysctls, windows};
use crate::api::error::Errors;
use crate::api::path::Path;

const FS_GROUP_POLICIES: [&str; 2] = ["Always", "OnRootMismatch"];
const SUPPLEMENTAL_POLICIES: [&str; 2] = ["Merge", "Strict"];
/// `MountOption` exists, behind a gate that is off.
const SE_LINUX_POLICIES: [&str; 1] = ["Recursive"];
const PROC_MOUNTS: [&str; 2] = ["Default", "Unmasked"];
/// The security context of the pod.
pub(super) fn check_pod(
    at: &Path,
    context: &PodSecurityContext,
    spec: &PodSpec,
    errors: &mut Errors,
) {
    check_identity(&at.child("fsGroup"), context.fs_group, errors);
    check_identity(&at.child("runAsUser"), context.run_as_user, errors);
    check_identity(&at.child("runAsGroup"), context.run_as_group, errors);
    for (i, group) in context.supplemental_groups.iter().flatten().enumerate() {
        check_identity(&at.child("supplementalGroups").index(i), Some(*group), errors);
    }
    if spec.host_pid == Some(true) && spec.share_process_namespace == Some(true) {
        let detail = "processes are shared with the host already (hostPID)";
        errors.invalid(&at.child("shareProcessNamespace"), true, detail);
    }
    sysctls::check(&at.child("sysctls"), context.sysctls.as_deref(), spec, errors);
    check_choices(at, context, errors);
    profiles::check_seccomp(at, context.seccomp_profile.as_ref(), errors);
    windows::check_options(at, context.windows_options.as_ref(), errors);
    profiles::check_app_armor(at, context.app_armor_profile.as_ref(), errors);
}

fn check_choices(at: &Path, context: &PodSecurityContext, errors: &mut Errors) {
    let choices = [
        ("fsGroupChangePolicy", &context.fs_group_change_policy, FS_GROUP_POLICIES.as_slice()),
        ("supplementalGroupsPolicy", &context.supplemental_groups_policy, &SUPPLEMENTAL_POLICIES),
        ("seLinuxChangePolicy", &context.se_linux_change_policy, &SE_LINUX_POLICIES),
    ];
    for (field, choice, supported) in choices {
        choice.iter().for_each(|c| errors.check_supported(&at.child(field), c, supported));
    }
}

/// The security context of a container.
pub(super) fn check_container(
    at: &Path,
    context: &SecurityContext,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    check_identity(&at.child("runAsUser"), context.run_as_user, errors);
    check_identity(&at.child("runAsGroup"), context.run_as_group, errors);
    if let Some(mount) = &context.proc_mount {
        let at = at.child("procMount");
        errors.check_supported(&at, mount, &PROC_MOUNTS);
        if mount == "Unmasked" && around.host_users() {
            errors.invalid(&at, mount.as_str(), "an unmasked /proc goes with hostUsers: false");
        }
    }
    profiles::check_seccomp(at, context.seccomp_profile.as_ref(), errors);
    check_escalation(at, context, errors);
    windows::check_options(at, context.windows_options.as_ref(), errors);
    profiles::check_app_armor(at, context.app_armor_profile.as_ref(), errors);
}

fn check_identity(at: &Path, id: Option<i64>, errors: &mut Errors) {
    let Some(id) = id else { return };
    for complaint in names::identity(id) {
        errors.invalid(at, id, complaint);
    }
}

/// A privileged container, or one with CAP_SYS_ADMIN, cannot be denied privilege escalation.
fn check_escalation(at: &Path, context: &SecurityContext, errors: &mut Errors) {
    if context.allow_privilege_escalation != Some(false) {
        return;
    }
    if context.privileged == Some(true) {
        let detail = "allowPrivilegeEscalation: false contradicts privileged: true";
        errors.invalid(at, false, detail);
    }
    let added = context.capabilities.iter().flat_map(|capabilities| capabilities.add.iter());
    for capability in added.flatten().filter(|capability| *capability == "CAP_SYS_ADMIN") {
        let detail = "allowPrivilegeEscalation: false contradicts adding CAP_SYS_ADMIN";
        errors.invalid(at, capability.as_str(), detail);
    }
}

/// Own users share nothing else with the host.
pub(super) fn check_host_users(
    at: &Path,
    spec: &PodSpec,
    container_positions: &[ContainerPosition<'_>],
    errors: &mut Errors,
) {
    if spec.host_users != Some(false) {
        return;
    }
    // The API server spells two of these names its own way.
    let shared = [
        ("hostNetwork", spec.host_network),
        ("HostPID", spec.host_pid),
        ("HostIPC", spec.host_ipc),
    ];
    for (field, _) in shared.iter().filter(|(_, shared)| *shared == Some(true)) {
        errors.forbidden(&at.child(field), "does not go with hostUsers: false");
    }
    for place in container_positions.iter().filter(|place| place.container.volume_devices.is_some())
    {
        let detail = "a device keeps its owner, so it does not go with hostUsers: false";
        errors.forbidden(&place.at.child("volumeDevices"), detail);
    }
}
