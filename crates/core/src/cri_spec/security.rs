//! The security contexts of sandboxes and containers.

mod profiles;
#[cfg(test)]
mod tests;
mod user;

use k8s_openapi::api::core::v1::{
    Container, Pod, PodSecurityContext, PodSpec, SELinuxOptions, SecurityContext,
};
use oarsman_cri_types::v1::{
    Capability, Int64Value, LinuxContainerSecurityContext, LinuxSandboxSecurityContext,
    NamespaceMode, NamespaceOption, SeLinuxOption, SecurityProfile, SupplementalGroupsPolicy,
    UserNamespace,
};

pub use user::ImageUser;

use super::error::ConfigError;
use super::node_context::NodeContext;
use crate::ids::ContainerId;
use crate::pod::PodExt;

const MASKED: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// What was decided about a pod beside its spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodGrants {
    /// The ids of its user namespace, when it asked for one and got it.
    pub user_namespace: Option<UserNamespace>,
    /// Groups that its volumes belong to.
    pub volume_groups: Vec<i64>,
    /// The handler of its runtime class, when it names one that is known.
    pub runtime_handler: Option<String>,
}

/// The security settings of a sandbox.
pub(super) fn sandbox(
    pod: &Pod,
    grants: &PodGrants,
) -> Result<LinuxSandboxSecurityContext, ConfigError> {
    let unset = PodSecurityContext::default();
    let context = pod_context(pod).unwrap_or(&unset);
    let mut groups: Vec<i64> = context.fs_group.into_iter().collect();
    groups.extend(&grants.volume_groups);
    groups.extend(context.supplemental_groups.iter().flatten());
    Ok(LinuxSandboxSecurityContext {
        namespace_options: Some(namespaces(pod, grants)?),
        selinux_options: context.se_linux_options.as_ref().map(selinux),
        run_as_user: context.run_as_user.map(number),
        run_as_group: context.run_as_group.map(number),
        supplemental_groups: groups,
        supplemental_groups_policy: groups_policy(context)?.into(),
        privileged: pod.all_containers().iter().any(|c| is_privileged(&c.spec)),
        // Whatever the pod wants for its containers; the sandbox does next to nothing.
        seccomp: Some(SecurityProfile::default()),
        ..LinuxSandboxSecurityContext::default()
    })
}

/// What a container's security settings are made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecurityContextInput<'a> {
    pub(super) pod: &'a Pod,
    pub(super) spec: &'a Container,
    pub(super) image_user: &'a ImageUser,
    /// The container whose processes it should see.
    pub(super) target: Option<&'a ContainerId>,
    pub(super) grants: &'a PodGrants,
    pub(super) node: &'a NodeContext<'a>,
}

/// The security settings of a container.
pub(super) fn container(
    input: &SecurityContextInput<'_>,
) -> Result<LinuxContainerSecurityContext, ConfigError> {
    let SecurityContextInput { pod, spec, node, .. } = *input;
    let context = effective(pod, spec);
    user::verify_non_root(pod, spec, &context, input.image_user)?;
    let (run_as_user, run_as_username) = user::run_as(&context, input.image_user);
    let (masked_paths, readonly_paths) = hidden(&context, node);
    let mut made = LinuxContainerSecurityContext {
        capabilities: context.capabilities.map(|all| Capability {
            add_capabilities: all.add.unwrap_or_default(),
            drop_capabilities: all.drop.unwrap_or_default(),
            ..Capability::default()
        }),
        privileged: context.privileged.unwrap_or_default(),
        namespace_options: Some(namespaces_with_target(input)?),
        selinux_options: context.se_linux_options.as_ref().map(selinux),
        run_as_user,
        run_as_group: context.run_as_group.map(number),
        run_as_username,
        readonly_rootfs: context.read_only_root_filesystem.unwrap_or_default(),
        no_new_privs: context.allow_privilege_escalation == Some(false),
        masked_paths,
        readonly_paths,
        seccomp: Some(profiles::seccomp(pod, spec, node)?.for_cri()),
        ..LinuxContainerSecurityContext::default()
    };
    set_groups(&mut made, pod, input.grants)?;
    profiles::set_app_armor(&mut made, pod, spec)?;
    Ok(made)
}

/// What the pod says for all its containers, and over it what the container says for itself.
pub(super) fn effective(pod: &Pod, spec: &Container) -> SecurityContext {
    let own = spec.security_context.clone().unwrap_or_default();
    let Some(shared) = pod_context(pod) else { return own };
    SecurityContext {
        se_linux_options: own.se_linux_options.or_else(|| shared.se_linux_options.clone()),
        run_as_user: own.run_as_user.or(shared.run_as_user),
        run_as_group: own.run_as_group.or(shared.run_as_group),
        run_as_non_root: own.run_as_non_root.or(shared.run_as_non_root),
        ..own
    }
}

fn set_groups(
    made: &mut LinuxContainerSecurityContext,
    pod: &Pod,
    grants: &PodGrants,
) -> Result<(), ConfigError> {
    if let Some(context) = pod_context(pod) {
        made.supplemental_groups.extend(context.fs_group);
        made.supplemental_groups.extend(context.supplemental_groups.iter().flatten());
        made.supplemental_groups_policy = groups_policy(context)?.into();
    }
    made.supplemental_groups.extend(&grants.volume_groups);
    Ok(())
}

fn groups_policy(context: &PodSecurityContext) -> Result<SupplementalGroupsPolicy, ConfigError> {
    match context.supplemental_groups_policy.as_deref() {
        None | Some("Merge") => Ok(SupplementalGroupsPolicy::Merge),
        Some("Strict") => Ok(SupplementalGroupsPolicy::Strict),
        Some(other) => {
            Err(ConfigError::Unknown { field: "supplementalGroupsPolicy", value: other.to_owned() })
        }
    }
}

/// The paths that are hidden from a container, and those that it may only read.
fn hidden(context: &SecurityContext, node: &NodeContext<'_>) -> (Vec<String>, Vec<String>) {
    if context.proc_mount.as_deref() == Some("Unmasked") {
        return (Vec::new(), Vec::new());
    }
    let of_machine = node.settings.masked_paths.iter().cloned();
    let masked = MASKED.map(str::to_owned).into_iter().chain(of_machine);
    (masked.collect(), READ_ONLY.map(str::to_owned).to_vec())
}

fn namespaces_with_target(
    input: &SecurityContextInput<'_>,
) -> Result<NamespaceOption, ConfigError> {
    let mut options = namespaces(input.pod, input.grants)?;
    // With a shared PID namespace there is no container namespace to join.
    if let (Some(target), NamespaceMode::Container) = (input.target, options.pid()) {
        options.set_pid(NamespaceMode::Target);
        options.target_id = target.to_string();
    }
    Ok(options)
}

fn namespaces(pod: &Pod, grants: &PodGrants) -> Result<NamespaceOption, ConfigError> {
    let unset = PodSpec::default();
    let spec = pod.spec().unwrap_or(&unset);
    let node_or = |on_node: Option<bool>, otherwise| match on_node {
        Some(true) => NamespaceMode::Node,
        Some(false) | None => otherwise,
    };
    let pid = match spec.share_process_namespace {
        Some(true) => NamespaceMode::Pod,
        Some(false) | None => NamespaceMode::Container,
    };
    Ok(NamespaceOption {
        network: node_or(spec.host_network, NamespaceMode::Pod).into(),
        ipc: node_or(spec.host_ipc, NamespaceMode::Pod).into(),
        pid: node_or(spec.host_pid, pid).into(),
        userns_options: Some(users(spec, grants)?),
        ..NamespaceOption::default()
    })
}

fn users(spec: &PodSpec, grants: &PodGrants) -> Result<UserNamespace, ConfigError> {
    match (spec.host_users, &grants.user_namespace) {
        (None | Some(true), _) => {
            Ok(UserNamespace { mode: NamespaceMode::Node.into(), ..UserNamespace::default() })
        }
        (Some(false), Some(granted)) => check_host_namespaces(spec).map(|()| granted.clone()),
        (Some(false), None) => Err(ConfigError::NoUserNamespace),
    }
}

/// API servers refuse it; the pod may come from elsewhere.
fn check_host_namespaces(spec: &PodSpec) -> Result<(), ConfigError> {
    let fields = [
        ("hostNetwork", spec.host_network),
        ("hostPID", spec.host_pid),
        ("hostIPC", spec.host_ipc),
    ];
    match fields.into_iter().find(|(_, is)| *is == Some(true)) {
        None => Ok(()),
        Some((field, _)) => Err(ConfigError::HostNamespace { field }),
    }
}

/// The user that all containers of a pod run as, where the spec says one and the same for each.
pub(super) fn common_user(pod: &Pod) -> Option<i64> {
    let containers = pod.all_containers();
    let users = containers.iter().map(|wanted| effective(pod, &wanted.spec).run_as_user);
    let mut users = users.collect::<Vec<_>>().into_iter();
    let first = users.next().flatten()?;
    users.all(|user| user == Some(first)).then_some(first)
}

/// The group that a pod's volumes belong to.
pub(super) fn group(pod: &Pod) -> Option<i64> {
    pod_context(pod)?.fs_group
}

fn pod_context(pod: &Pod) -> Option<&PodSecurityContext> {
    pod.spec().and_then(|spec| spec.security_context.as_ref())
}

fn is_privileged(spec: &Container) -> bool {
    spec.security_context.as_ref().is_some_and(|context| context.privileged == Some(true))
}

fn number(value: i64) -> Int64Value {
    Int64Value { value }
}

fn selinux(options: &SELinuxOptions) -> SeLinuxOption {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    SeLinuxOption {
        user: text(&options.user),
        role: text(&options.role),
        r#type: text(&options.type_),
        level: text(&options.level),
    }
}
