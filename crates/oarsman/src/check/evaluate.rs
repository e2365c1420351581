//! Turns facts and requirements into findings. Has no effects: the same facts always give the same findings.

mod cgroups;
mod disk;
mod embedded_runtime;
mod host;
mod kernel;
mod limits;
mod permissions;
mod ports;
mod resolver;
mod root;
mod runtime;
mod swap;
#[cfg(test)]
mod tests;

use super::facts::MachineFacts;
use super::finding::Finding;
use super::requirements::Requirements;

/// All findings, problems first.
pub(super) fn all(facts: &MachineFacts, requirements: &Requirements) -> Vec<Finding> {
    [
        runtime::evaluate(&facts.runtime, requirements),
        cgroups::evaluate(&facts.cgroups, requirements),
        permissions::evaluate(&facts.permissions),
        root::evaluate(&facts.root),
        disk::evaluate(&facts.directories, facts.memory),
        kernel::evaluate(&facts.kernel, requirements),
        swap::evaluate(&facts.swaps, requirements),
        ports::evaluate(&facts.ports, &facts.root, requirements),
        resolver::evaluate(facts.resolver.as_ref()),
        limits::evaluate(facts.limits),
        vec![host::clock(facts.now), host::name(&facts.host_name)],
    ]
    .concat()
}
