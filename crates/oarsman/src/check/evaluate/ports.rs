//! Checks that the ports of the kubelet's servers are free.

use crate::check::facts::ports::{PortFacts, PortHolder};
use crate::check::facts::root::RootFacts;
use crate::check::finding::Finding;
use crate::check::requirements::Requirements;

const CHECK: &str = "ports";

pub(super) fn evaluate(
    ports: &[PortFacts],
    root: &RootFacts,
    requirements: &Requirements,
) -> Vec<Finding> {
    let taken: Vec<Finding> =
        ports.iter().filter_map(|port| port_finding(port, root, requirements)).collect();
    if !taken.is_empty() || ports.is_empty() {
        return taken;
    }
    let numbers: Vec<String> = ports.iter().map(|port| port.number.to_string()).collect();
    vec![Finding::ok(CHECK, format!("{} are free", numbers.join(" and ")))]
}

fn port_finding(
    port: &PortFacts,
    root: &RootFacts,
    requirements: &Requirements,
) -> Option<Finding> {
    let (holder, fix) = match &port.holder {
        PortHolder::Free => return None,
        PortHolder::Process(_, pid)
            if root.holder.as_deref() == Some(&format!("process {pid}")) =>
        {
            return None;
        }
        PortHolder::Process(name, pid) => (
            format!("{name} (process {pid})"),
            format!("stop it (systemctl status {pid} names its unit)"),
        ),
        PortHolder::Unknown => ("somebody".to_owned(), "find out who with ss -ltnp".to_owned()),
    };
    Some(Finding::problem_if(
        requirements.is_node,
        CHECK,
        format!("{holder} listens at {}, which a kubelet takes; oarsman run does not", port.number),
        format!("{fix}, or write another {} into the kubelet's configuration", port.field),
    ))
}
