//! Adapts a spec to what we hold: libcontainer does not ask, it fails.

use std::io;

use oci_spec::runtime::{
    LinuxCapabilities, PosixRlimit, PosixRlimitBuilder, PosixRlimitType, Process, Spec, UserBuilder,
};
use rustix::process::{Resource, getrlimit};
use rustix::thread::CapabilitySet;

use super::HelperError;
use crate::capabilities;

/// libcontainer prepares everything as root with all that we hold, and our executor takes from that what the process shall not have: so the spec
/// that libcontainer gets has neither its user and capabilities, nor its seccomp profile and `noNewPrivileges`.
pub(super) fn adapt(spec: &mut Spec) -> Result<(), HelperError> {
    if let Some(process) = spec.process_mut() {
        adapt_process(process)?;
    }
    if let Some(linux) = spec.linux_mut() {
        linux.set_seccomp(None);
    }
    Ok(())
}

pub(super) fn adapt_process(process: &mut Process) -> Result<(), HelperError> {
    let held = capabilities::held().map_err(HelperError::io("cannot read our capabilities"))?;
    let user = UserBuilder::default().uid(0_u32).gid(0_u32);
    let user = match process.user().umask() {
        Some(umask) => user.umask(umask),
        None => user,
    };
    let user = user.build().map_err(|error| HelperError::Invalid(error.to_string()))?;
    process.set_user(user);
    process.set_capabilities(Some(all_of(held)));
    process.set_no_new_privileges(None);
    // It may be on a mount that is attached later, and be open to the user alone.
    process.set_cwd("/".into());
    clamp_to_held(process)
}

/// Asks for no limit that we may not set.
pub(super) fn clamp_to_held(process: &mut Process) -> Result<(), HelperError> {
    let held = capabilities::held().map_err(HelperError::io("cannot read our capabilities"))?;
    if !held.contains(CapabilitySet::SYS_RESOURCE) {
        let floor = read_oom_score().map_err(HelperError::io("cannot read our oom_score_adj"))?;
        process.set_oom_score_adj(process.oom_score_adj().map(|score| score.max(floor)));
        let limits =
            process.rlimits().clone().map(|limits| limits.into_iter().map(clamp).collect());
        process.set_rlimits(limits.transpose()?);
    }
    Ok(())
}

fn all_of(held: CapabilitySet) -> LinuxCapabilities {
    let set = capabilities::named(held);
    let mut all = LinuxCapabilities::default();
    all.set_bounding(Some(set.clone())).set_permitted(Some(set.clone())).set_effective(Some(set));
    all.set_inheritable(None).set_ambient(None);
    all
}

/// Without `CAP_SYS_RESOURCE` no process may go below the value that it was started with.
fn read_oom_score() -> io::Result<i32> {
    let text = std::fs::read_to_string("/proc/self/oom_score_adj")?;
    text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, text))
}

/// Nor may it raise a hard limit.
fn clamp(limit: PosixRlimit) -> Result<PosixRlimit, HelperError> {
    let Some(maximum) = getrlimit(resource(limit.typ())).maximum else {
        return Ok(limit);
    };
    let clamped = PosixRlimitBuilder::default().typ(limit.typ()).hard(limit.hard().min(maximum));
    clamped
        .soft(limit.soft().min(maximum))
        .build()
        .map_err(|error| HelperError::Invalid(error.to_string()))
}

fn resource(kind: PosixRlimitType) -> Resource {
    match kind {
        PosixRlimitType::RlimitCpu => Resource::Cpu,
        PosixRlimitType::RlimitFsize => Resource::Fsize,
        PosixRlimitType::RlimitData => Resource::Data,
        PosixRlimitType::RlimitStack => Resource::Stack,
        PosixRlimitType::RlimitCore => Resource::Core,
        PosixRlimitType::RlimitRss => Resource::Rss,
        PosixRlimitType::RlimitNproc => Resource::Nproc,
        PosixRlimitType::RlimitNofile => Resource::Nofile,
        PosixRlimitType::RlimitMemlock => Resource::Memlock,
        PosixRlimitType::RlimitAs => Resource::As,
        PosixRlimitType::RlimitLocks => Resource::Locks,
        PosixRlimitType::RlimitSigpending => Resource::Sigpending,
        PosixRlimitType::RlimitMsgqueue => Resource::Msgqueue,
        PosixRlimitType::RlimitNice => Resource::Nice,
        PosixRlimitType::RlimitRtprio => Resource::Rtprio,
        PosixRlimitType::RlimitRttime => Resource::Rttime,
    }
}
