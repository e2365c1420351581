//! Kernel parameters a pod sets for itself.

use k8s_openapi::api::core::v1::{PodSpec, Sysctl};

use super::names;
use crate::api::error::Errors;
use crate::api::path::Path;
use crate::api::sysctl::dotted;

const SYSCTL_MAX: usize = 253;
/// Sysctls of the IPC namespace; those of the network namespace all begin with `net.`.
const IPC_SYSCTLS: [&str; 10] = [
    "kernel.msg",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shm",
    "kernel.shm_rmid_forced",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
];

/// Sysctls of the pod.
pub(super) fn check(at: &Path, sysctls: Option<&[Sysctl]>, spec: &PodSpec, errors: &mut Errors) {
    let sysctls = sysctls.unwrap_or_default();
    for (i, Sysctl { name, .. }) in sysctls.iter().enumerate() {
        let at = at.index(i).child("name");
        if name.is_empty() {
            errors.required(&at, "");
        } else if !is_sysctl_name(name) {
            errors.invalid(&at, name.as_str(), "there can be no sysctl of that name");
        } else if sysctls[..i].iter().any(|earlier| earlier.name == *name) {
            errors.duplicate(&at, name);
        }
        if let Some(namespace) = shared_namespace(name, spec) {
            let detail = format!("belongs to the host while {namespace} is true");
            errors.invalid(&at, name.as_str(), detail);
        }
    }
}

fn is_sysctl_name(name: &str) -> bool {
    let is_segment = |segment: &str| {
        names::is_framed(segment, names::is_lower_alphanumeric, |c| c == '-' || c == '_')
    };
    name.len() <= SYSCTL_MAX && name.split(['.', '/']).all(is_segment)
}

/// The field by which the pod shares with the host what this sysctl would change.
fn shared_namespace(name: &str, spec: &PodSpec) -> Option<&'static str> {
    let name = dotted(name);
    let name = name.split('*').next().unwrap_or_default();
    let of_ipc = IPC_SYSCTLS.contains(&name) || name.starts_with("fs.mqueue.");
    if spec.host_network == Some(true) && name.starts_with("net.") {
        Some("hostNetwork")
    } else if spec.host_ipc == Some(true) && of_ipc {
        Some("hostIPC")
    } else {
        None
    }
}
