//! What belongs to Windows only, and what never does.

use k8s_openapi::api::core::v1::{PodSpec, WindowsSecurityContextOptions};
use serde_json::Value;

use super::context::ContainerPosition;
use super::names;
use crate::api::error::Errors;
use crate::api::path::Path;

const SPEC_MAX_BYTES: usize = 64 * 1024;
const DOMAIN_MAX: usize = 256;
const USER_MAX: usize = 104;
const NET_BIOS_MAX: usize = 15;

/// Options of a security context.
pub(super) fn check_options(
    at: &Path,
    options: Option<&WindowsSecurityContextOptions>,
    errors: &mut Errors,
) {
    let Some(options) = options else { return };
    let at = at.child("windowsOptions");
    if let Some(name) = &options.gmsa_credential_spec_name {
        let at = at.child("gmsaCredentialSpecName");
        errors.invalid_for(&at, name, names::dns_subdomain(name));
    }
    if let Some(spec) = &options.gmsa_credential_spec
        && !(1..=SPEC_MAX_BYTES).contains(&spec.len())
    {
        let at = at.child("gmsaCredentialSpec");
        errors.invalid(&at, spec.as_str(), "must have from 1 byte to 64 KiB");
    }
    if let Some(name) = &options.run_as_user_name {
        let at = at.child("runAsUserName");
        user_name(name).into_iter().for_each(|detail| errors.invalid(&at, name.as_str(), detail));
    }
}

/// What is wrong with `DOMAIN\user`.
fn user_name(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["must not be empty"];
    }
    if name.contains(|c: char| c.is_ascii_control()) {
        return vec!["must not have control characters"];
    }
    match name.split('\\').collect::<Vec<_>>()[..] {
        [user] => user_part(user),
        [domain, user] => domain_part(domain).into_iter().chain(user_part(user)).collect(),
        _ => vec!["may have one backslash, between domain and user"],
    }
}

fn domain_part(domain: &str) -> Vec<&'static str> {
    let rules = [
        (domain.len() < DOMAIN_MAX, "the domain must be shorter than 256 characters"),
        (is_net_bios(domain) || is_dns(domain), "the domain is neither a NetBIOS nor a DNS name"),
    ];
    broken(&rules)
}

fn user_part(user: &str) -> Vec<&'static str> {
    let is_blank = !user.is_empty() && user.chars().all(|c| c == '.' || c == ' ');
    let rules = [
        (!user.is_empty(), "the user must not be empty"),
        (user.len() <= USER_MAX, "the user must not be longer than 104 characters"),
        (!is_blank, "the user must not be all dots and blanks"),
        (
            !user.contains(|c| "\"/\\:;|=,+*?<>@[]".contains(c)),
            "the user must not have any of \"/\\:;|=,+*?<>@[]",
        ),
    ];
    broken(&rules)
}

fn broken(rules: &[(bool, &'static str)]) -> Vec<&'static str> {
    rules.iter().filter(|(holds, _)| !holds).map(|(_, rule)| *rule).collect()
}

fn is_net_bios(domain: &str) -> bool {
    let length = domain.chars().count();
    (1..=NET_BIOS_MAX).contains(&length)
        && !domain.starts_with('.')
        && !domain.contains(|c| "\\/:*?\"<>|".contains(c))
}

fn is_dns(domain: &str) -> bool {
    let is_label = |label: &str| {
        label.len() <= 63 && names::is_framed(label, |c| c.is_ascii_alphanumeric(), |c| c == '-')
    };
    domain.split('.').all(is_label)
}

/// Processes of the host: all containers or none, and on the host's network.
pub(super) fn check_host_process(
    at: &Path,
    spec: &PodSpec,
    container_positions: &[ContainerPosition<'_>],
    errors: &mut Errors,
) {
    let context = spec.security_context.as_ref();
    let of_pod = host_process(context.and_then(|context| context.windows_options.as_ref()));
    let mut count = 0;
    for place in container_positions {
        let context = place.container.security_context.as_ref();
        let own = host_process(context.and_then(|context| context.windows_options.as_ref()));
        if let (Some(own), Some(of_pod)) = (own, of_pod)
            && own != of_pod
        {
            let at = place.at.child("securityContext").child("windowsOptions").child("hostProcess");
            errors.invalid(&at, own, "the pod says otherwise");
        }
        count += usize::from(own.or(of_pod) == Some(true));
    }
    if count > 0 && count != container_positions.len() {
        errors.invalid(at, "", "either all containers are host processes or none is");
    }
    if count > 0 && spec.host_network != Some(true) {
        errors.invalid(&at.child("hostNetwork"), false, "host processes need hostNetwork");
    }
}

fn host_process(options: Option<&WindowsSecurityContextOptions>) -> Option<bool> {
    options.and_then(|options| options.host_process)
}

/// A pod for Linux has no options of Windows.
pub(super) fn check_linux_pod(
    at: &Path,
    spec: &PodSpec,
    container_positions: &[ContainerPosition<'_>],
    errors: &mut Errors,
) {
    let detail = "a pod for Linux has none";
    if spec.security_context.iter().any(|context| context.windows_options.is_some()) {
        errors.forbidden(&at.child("securityContext").child("windowsOptions"), detail);
    }
    for place in container_positions {
        let context = place.container.security_context.as_ref();
        if context.is_some_and(|context| context.windows_options.is_some()) {
            errors.forbidden(&place.at.child("securityContext").child("windowsOptions"), detail);
        }
    }
}

/// Fields of a security context of Linux, by the names they have in JSON.
const LINUX_OF_POD: [&str; 11] = [
    "appArmorProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsGroup",
    "runAsUser",
    "seLinuxChangePolicy",
    "seLinuxOptions",
    "seccompProfile",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
];
const LINUX_OF_CONTAINER: [&str; 10] = [
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
];

/// A pod for Windows has nothing of Linux.
pub(super) fn check_windows_pod(
    at: &Path,
    spec: &PodSpec,
    container_positions: &[ContainerPosition<'_>],
    errors: &mut Errors,
) {
    let of_spec = [
        ("hostUsers", spec.host_users.is_some()),
        ("hostPID", spec.host_pid == Some(true)),
        ("hostIPC", spec.host_ipc == Some(true)),
        ("shareProcessNamespace", spec.share_process_namespace.is_some()),
    ];
    for (field, _) in of_spec.iter().filter(|(_, set)| *set) {
        errors.forbidden(&at.child(field), "a pod for Windows has none");
    }
    let context = serde_json::to_value(&spec.security_context).unwrap_or_default();
    forbid_fields(&at.child("securityContext"), &context, &LINUX_OF_POD, errors);
    for place in container_positions {
        let context = serde_json::to_value(&place.container.security_context).unwrap_or_default();
        let at = place.at.child("securityContext");
        forbid_fields(&at, &context, &LINUX_OF_CONTAINER, errors);
    }
}

fn forbid_fields(at: &Path, context: &Value, fields: &[&str], errors: &mut Errors) {
    for field in fields.iter().filter(|field| context.get(**field).is_some()) {
        errors.forbidden(&at.child(field), "a pod for Windows has none");
    }
}
