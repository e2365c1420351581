//! User namespaces of the fake runtime: only one handler has them, a container has that of its sandbox, and no two pods share ids.

use oarsman_cri::{CriError, ErrorCode, Result};
use oarsman_cri_types::v1::{ContainerConfig, NamespaceMode, PodSandboxConfig, UserNamespace};

use super::sandboxes::{FakeSandbox, HANDLER, SandboxPhase};
use super::state::FakeRuntimeState;

impl FakeRuntimeState {
    /// A kernel lets two pods have the same ids, which would let one act on the files of the other: here it is an error.
    pub(super) fn check_user_namespace(
        &self,
        call: &'static str,
        config: &PodSandboxConfig,
        handler: &str,
    ) -> Result<()> {
        let wanted = of_sandbox(config);
        if wanted.mode() != NamespaceMode::Pod {
            return Ok(());
        }
        if handler != HANDLER {
            return Err(refusal(call, "the handler has no user namespaces"));
        }
        let uid = config.metadata.as_ref().map(|metadata| &metadata.uid);
        let is_other = |sandbox: &&FakeSandbox| {
            sandbox.phase == SandboxPhase::Ready && Some(&sandbox.metadata.uid) != uid
        };
        let mut others = self.sandboxes.values().filter(is_other);
        match others.any(|other| share_ids(&of_sandbox(&other.config), &wanted)) {
            true => Err(refusal(call, "another pod has these ids")),
            false => Ok(()),
        }
    }
}

/// A container joins the user namespace of its sandbox, so that it has to ask for the same one.
pub(super) fn check_container(
    call: &'static str,
    sandbox: &FakeSandbox,
    config: &ContainerConfig,
) -> Result<()> {
    let security = config.linux.as_ref().and_then(|linux| linux.security_context.as_ref());
    let options = security.and_then(|security| security.namespace_options.as_ref());
    let wanted = options.and_then(|options| options.userns_options.clone());
    let wanted = wanted.filter(|users| users.mode() == NamespaceMode::Pod).unwrap_or_default();
    let has = of_sandbox(&sandbox.config);
    let has = if has.mode() == NamespaceMode::Pod { has } else { UserNamespace::default() };
    match wanted.uids == has.uids && wanted.gids == has.gids {
        true => Ok(()),
        false => Err(refusal(call, "the user namespace is not that of the sandbox")),
    }
}

fn of_sandbox(config: &PodSandboxConfig) -> UserNamespace {
    let security = config.linux.as_ref().and_then(|linux| linux.security_context.as_ref());
    let options = security.and_then(|security| security.namespace_options.as_ref());
    let on_node = UserNamespace { mode: NamespaceMode::Node.into(), ..UserNamespace::default() };
    options.and_then(|options| options.userns_options.clone()).unwrap_or(on_node)
}

fn share_ids(one: &UserNamespace, other: &UserNamespace) -> bool {
    one.uids.iter().any(|a| {
        other.uids.iter().any(|b| {
            let end = |first: u32, length: u32| u64::from(first) + u64::from(length);
            u64::from(a.host_id) < end(b.host_id, b.length)
                && u64::from(b.host_id) < end(a.host_id, a.length)
        })
    })
}

fn refusal(call: &'static str, why: &str) -> CriError {
    CriError::new(call, ErrorCode::InvalidArgument, why)
}
