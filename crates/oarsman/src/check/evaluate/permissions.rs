//! Checks that this process runs as root and with the capabilities it needs.

use crate::check::facts::permissions::PermissionFacts;
use crate::check::finding::Finding;

const CHECK: &str = "permissions";
/// Without this capability limits of the kernel cannot be raised.
const RAISES_LIMITS: &str = "CAP_SYS_RESOURCE";

pub(super) fn evaluate(permissions: &PermissionFacts) -> Vec<Finding> {
    if !permissions.is_root {
        return vec![Finding::problem(
            CHECK,
            "this is not root: pods need mounts, cgroups and namespaces",
            "run it again with sudo",
        )];
    }
    let lacking = permissions.lacking.iter().copied();
    let needed: Vec<&str> = lacking.filter(|name| *name != RAISES_LIMITS).collect();
    let mut findings = Vec::new();
    if !needed.is_empty() {
        findings.push(Finding::problem(
            CHECK,
            format!("root lacks {}", needed.join(", ")),
            "name them in CapabilityBoundingSet= of the unit, or leave that line out; in a container, start that with --privileged",
        ));
    }
    if permissions.lacking.contains(RAISES_LIMITS) {
        findings.push(Finding::warning(
            CHECK,
            "root lacks CAP_SYS_RESOURCE: no oom_score_adj can be lowered, so guaranteed pods are not spared when \
             memory runs out, and a runtime started like this starts no privileged container",
            "name it in CapabilityBoundingSet= of the unit, or leave that line out; in a container, start that with --cap-add SYS_RESOURCE",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, "root, with all capabilities that are needed"));
    }
    findings
}
