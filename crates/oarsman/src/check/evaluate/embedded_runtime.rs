//! Checks what the embedded runtime needs of this machine.

use oarsman_pod_network::NetworkFinding;

use crate::check::facts::embedded_runtime::EmbeddedRuntimeFacts;
use crate::check::finding::Finding;

const NETWORK: &str = "pod network";

pub(super) fn evaluate(facts: &EmbeddedRuntimeFacts) -> Vec<Finding> {
    let mut findings = vec![Finding::ok("runtime", "the embedded one, which needs no other")];
    match &facts.obstacles {
        Ok(obstacles) if obstacles.is_empty() => {
            findings.push(Finding::ok(NETWORK, "no firewall drops the packets of pods"));
        }
        Ok(obstacles) => findings.extend(obstacles.iter().map(obstacle)),
        Err(error) => findings.push(Finding::problem(
            NETWORK,
            format!("the packet filters of the kernel cannot be used: {error}"),
            "run this as root, on a kernel with nf_tables (modprobe nf_tables)",
        )),
    }
    if let Some(error) = &facts.uncontrolled_devices {
        findings.push(Finding::problem(
            "devices",
            format!("containers are refused, because they could use all devices of this machine: {error}"),
            "run as root, on a kernel with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF; in a container, start that with --privileged",
        ));
    }
    findings
}

fn obstacle(found: &NetworkFinding) -> Finding {
    Finding::warning(NETWORK, found.problem.as_str(), found.fix.as_str())
}
