//! Puts the parts of a spec together.

use std::path::{Path, PathBuf};

use oarsman_cri_types::v1::{ContainerConfig, LinuxContainerSecurityContext, Mount as CriMount};
use oarsman_image_store::ImageRunConfig;
use oci_spec::runtime::{
    LinuxBuilder, LinuxCapabilities, Process, ProcessBuilder, RootBuilder, Spec, SpecBuilder,
    UserBuilder,
};

use super::SpecError;
use super::mounts::{MountTraits, PodFileMounts};
use super::namespaces::{JoinableNamespaces, namespaces};
use super::resources::CgroupAbilities;
use super::security_modules::SecurityModules;
use super::user_namespace::PodUserNamespace;
use super::users::ProcessUser;
use super::{capabilities, devices, mounts, process, resources, seccomp};

/// All that a spec is made of beside the container's configuration.
#[derive(Debug)]
pub(crate) struct SpecInput<'a> {
    pub(crate) config: &'a ContainerConfig,
    /// The mounts of the configuration, with those of images at their places on the node.
    pub(crate) mounts: &'a [CriMount],
    pub(crate) image: &'a ImageRunConfig,
    pub(crate) user: &'a ProcessUser,
    pub(crate) hostname: &'a str,
    pub(crate) root: &'a Path,
    pub(crate) cgroup: PathBuf,
    pub(crate) pod_files: PodFileMounts,
    pub(crate) namespaces: JoinableNamespaces,
    pub(crate) user_namespace: Option<&'a PodUserNamespace>,
    pub(crate) abilities: CgroupAbilities,
    pub(crate) kernel: (u32, u32),
    pub(crate) modules: SecurityModules,
}

/// The security context of a container; one without any has the default one.
pub(crate) fn security_context(config: &ContainerConfig) -> LinuxContainerSecurityContext {
    let context = config.linux.as_ref().and_then(|linux| linux.security_context.clone());
    context.unwrap_or_default()
}

/// The spec of a container.
pub(crate) fn spec(input: &SpecInput<'_>) -> Result<Spec, SpecError> {
    let context = security_context(input.config);
    input.modules.check_selinux(&context)?;
    let options = context.namespace_options.clone().unwrap_or_default();
    let caps =
        capabilities::sets(&context.capabilities.clone().unwrap_or_default(), context.privileged)?;
    let bounding = caps.bounding().clone().unwrap_or_default();
    let choice = seccomp::choice(context.seccomp.as_ref(), context.privileged);
    let traits = MountTraits {
        privileged: context.privileged,
        readonly_root: context.readonly_rootfs,
        binds_sysfs: input.namespaces.network.is_none() && input.user_namespace.is_some(),
    };
    let found = devices::devices(&input.config.devices, context.privileged)?;
    let asked = input.config.linux.as_ref().and_then(|linux| linux.resources.clone());
    let asked = asked.unwrap_or_default();
    let own_cgroup = input.abilities.is_unified && !context.privileged;
    let mut linux = LinuxBuilder::default()
        .cgroups_path(input.cgroup.clone())
        .namespaces(namespaces(&options, &input.namespaces, own_cgroup)?)
        .resources(resources::resources(&asked, found.rules, input.abilities)?)
        .devices(found.nodes)
        .masked_paths(unless(context.privileged, &context.masked_paths))
        .readonly_paths(unless(context.privileged, &context.readonly_paths));
    if let Some(users) = input.user_namespace {
        let [uids, gids] = users.mappings()?;
        linux = linux.uid_mappings(uids).gid_mappings(gids);
    }
    if let Some(profile) = seccomp::profile(&choice, &bounding, input.kernel)? {
        linux = linux.seccomp(profile);
    }
    if let Some(propagation) = mounts::root_propagation(input.mounts) {
        linux = linux.rootfs_propagation(propagation);
    }
    let root = RootBuilder::default().path(input.root).readonly(context.readonly_rootfs);
    let spec = SpecBuilder::default()
        .version("1.0.2")
        .process(process_of(input, &context, caps, asked.oom_score_adj)?)
        .root(root.build()?)
        .mounts(mounts::mounts(input.mounts, &input.pod_files, traits)?)
        .linux(linux.build()?);
    let mut spec = spec.build()?;
    spec.set_hostname(None);
    Ok(spec)
}

fn unless(privileged: bool, paths: &[String]) -> Vec<String> {
    if privileged { Vec::new() } else { paths.to_vec() }
}

fn process_of(
    input: &SpecInput<'_>,
    context: &LinuxContainerSecurityContext,
    caps: LinuxCapabilities,
    oom_score_adj: i64,
) -> Result<Process, SpecError> {
    let ProcessUser { uid, gid, groups } = input.user.clone();
    let user = UserBuilder::default().uid(uid).gid(gid).additional_gids(groups).build()?;
    let score = i32::try_from(oom_score_adj)
        .map_err(|_| SpecError::Resource { field: "oom_score_adj", value: oom_score_adj })?;
    let mut process = ProcessBuilder::default()
        .terminal(input.config.tty)
        .user(user)
        .args(process::arguments(input.config, input.image)?)
        .env(process::environment(input.config, input.image, input.hostname)?)
        .cwd(process::working_directory(input.config, input.image))
        .capabilities(caps)
        .no_new_privileges(context.no_new_privs)
        .oom_score_adj(score);
    if let Some(profile) = input.modules.apparmor_profile(context)? {
        process = process.apparmor_profile(profile);
    }
    let mut process = process.build()?;
    // Those of the node; the builder has one of its own.
    process.set_rlimits(None);
    Ok(process)
}
