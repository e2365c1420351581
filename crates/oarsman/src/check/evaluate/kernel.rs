//! Checks that the kernel has what containers need: version, namespaces, overlayfs, settings.

use super::runtime::major_minor;
use crate::check::facts::kernel::KernelFacts;
use crate::check::finding::Finding;
use crate::check::requirements::Requirements;
use crate::runtime_endpoint::NamedRuntime;

const CHECK: &str = "kernel";
/// The oldest one that Kubernetes supports.
const OLDEST: (u32, u32) = (4, 19);
/// The first in which a mount can be made read-only before it is seen anywhere (mount_setattr).
const OLDEST_EMBEDDED: (u32, u32) = (5, 12);
/// What a kubelet wants, and sets itself unless it is told to protect the kernel's defaults.
const WANTED: [(&str, i64); 6] = [
    ("vm/overcommit_memory", 1),
    ("vm/panic_on_oom", 0),
    ("kernel/panic", 10),
    ("kernel/panic_on_oops", 1),
    ("kernel/keys/root_maxkeys", 1_000_000),
    ("kernel/keys/root_maxbytes", 25_000_000),
];

pub(super) fn evaluate(kernel: &KernelFacts, requirements: &Requirements) -> Vec<Finding> {
    let mut findings = vec![version(kernel, requirements)];
    findings.extend(overlay(kernel));
    findings.extend(namespaces(kernel));
    findings.extend(forwarding(kernel, requirements));
    if requirements.is_node {
        findings.extend(bridges(kernel));
        findings.extend(tunables(kernel, requirements));
    }
    findings
}

fn version(kernel: &KernelFacts, requirements: &Requirements) -> Finding {
    let what = format!("Linux {}", kernel.release);
    match major_minor(&kernel.release) {
        Some(numbers) if uses_embedded(requirements) && numbers < OLDEST_EMBEDDED => {
            Finding::problem(
                CHECK,
                format!("{what} is older than what the embedded runtime needs"),
                "upgrade to Linux 5.12 or newer, or name another runtime with --runtime",
            )
        }
        Some(numbers) if numbers < OLDEST => Finding::warning(
            CHECK,
            format!("{what} is older than the oldest that Kubernetes supports"),
            "upgrade to Linux 4.19 or newer",
        ),
        _ => Finding::ok(CHECK, what),
    }
}

fn overlay(kernel: &KernelFacts) -> Option<Finding> {
    (!kernel.has_overlay).then(|| {
        Finding::warning(
            CHECK,
            "overlay file systems are not there (yet): images are unpacked on them",
            "modprobe overlay && echo overlay > /etc/modules-load.d/oarsman.conf",
        )
    })
}

fn namespaces(kernel: &KernelFacts) -> Option<Finding> {
    if kernel.lacking.is_empty() {
        return None;
    }
    let names: Vec<&str> = kernel.lacking.iter().copied().collect();
    let what = format!("it has no namespaces of these kinds: {}", names.join(", "));
    Some(Finding::problem(CHECK, what, "use your distribution's kernel, which has them"))
}

fn forwarding(kernel: &KernelFacts, requirements: &Requirements) -> Option<Finding> {
    (kernel.settings.get("net/ipv4/ip_forward") == Some(&0)).then(|| {
        if uses_embedded(requirements) {
            return Finding::ok(
                CHECK,
                "it does not forward packets: the first pod with an address of its own switches net.ipv4.ip_forward on, \
                 and it stays on",
            );
        }
        Finding::warning(
            CHECK,
            "it does not forward packets: unless the CNI plugin changes that, pods reach nothing outside of this machine",
            sysctl("net/ipv4/ip_forward", 1),
        )
    })
}

fn uses_embedded(requirements: &Requirements) -> bool {
    requirements.runtime == NamedRuntime::Embedded
}

/// Services that kube-proxy makes with iptables need bridged packets to go through them.
fn bridges(kernel: &KernelFacts) -> Option<Finding> {
    const PATH: &str = "net/bridge/bridge-nf-call-iptables";
    match kernel.settings.get(PATH) {
        Some(1) => None,
        Some(_) => Some(Finding::warning(
            CHECK,
            "packets within a bridge pass iptables by: Services of kube-proxy fail between pods of one node",
            sysctl(PATH, 1),
        )),
        None => Some(Finding::warning(
            CHECK,
            "br_netfilter is not loaded: with a CNI plugin that makes bridges, Services of kube-proxy fail between pods \
             of one node",
            "modprobe br_netfilter && echo br_netfilter > /etc/modules-load.d/br_netfilter.conf",
        )),
    }
}

/// Settings that the kubelet wants. With protectKernelDefaults it does not set them, and refuses to start if they differ.
fn tunables(kernel: &KernelFacts, requirements: &Requirements) -> Vec<Finding> {
    if !requirements.protects_kernel {
        return Vec::new();
    }
    let wrong = WANTED
        .iter()
        .filter(|(path, want)| kernel.settings.get(path).is_some_and(|value| value != want));
    let finding = |(path, want): &(&str, i64)| {
        let name = path.replace('/', ".");
        let value = kernel.settings.get(path).copied().unwrap_or_default();
        Finding::problem(
            CHECK,
            format!("{name} is {value}, and protectKernelDefaults forbids to make it {want}"),
            sysctl(path, *want),
        )
    };
    wrong.map(finding).collect()
}

/// A command that sets a sysctl now and after every boot.
pub(super) fn sysctl(path: &str, value: i64) -> String {
    let name = path.replace('/', ".");
    format!("sysctl -w {name}={value} && echo {name}={value} >> /etc/sysctl.d/90-oarsman.conf")
}
