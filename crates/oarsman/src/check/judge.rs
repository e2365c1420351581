//! What the facts mean for the plan. Nothing is read here: the same facts always mean the same.

mod cgroups;
mod host;
mod kernel;
mod limits;
mod permissions;
mod places;
mod ports;
mod resolver;
mod root;
mod runtime;
mod swap;
#[cfg(test)]
mod tests;

use super::facts::Facts;
use super::finding::Finding;
use super::plan::Plan;

/// Everything there is to say, what matters most first.
pub(super) fn all(facts: &Facts, plan: &Plan) -> Vec<Finding> {
    [
        runtime::judge(&facts.runtime, plan),
        cgroups::judge(&facts.cgroups, plan),
        permissions::judge(&facts.permissions),
        root::judge(&facts.root),
        places::judge(&facts.places, facts.memory),
        kernel::judge(&facts.kernel, plan),
        swap::judge(&facts.swaps, plan),
        ports::judge(&facts.ports, &facts.root, plan),
        resolver::judge(facts.resolver.as_ref()),
        limits::judge(facts.limits),
        vec![host::clock(facts.now), host::name(&facts.host_name)],
    ]
    .concat()
}
