//! Whether the ports of a node's server are free.

use crate::check::facts::ports::{Holder, Port};
use crate::check::facts::root::Root;
use crate::check::finding::Finding;
use crate::check::plan::Plan;

const CHECK: &str = "ports";

pub(super) fn judge(ports: &[Port], root: &Root, plan: &Plan) -> Vec<Finding> {
    let taken: Vec<Finding> = ports.iter().filter_map(|port| taken(port, root, plan)).collect();
    if !taken.is_empty() || ports.is_empty() {
        return taken;
    }
    let numbers: Vec<String> = ports.iter().map(|port| port.number.to_string()).collect();
    vec![Finding::ok(CHECK, format!("{} are free", numbers.join(" and ")))]
}

fn taken(port: &Port, root: &Root, plan: &Plan) -> Option<Finding> {
    let (holder, fix) = match &port.holder {
        Holder::Nobody => return None,
        Holder::Process(_, pid) if root.holder.as_deref() == Some(&format!("process {pid}")) => {
            return None;
        }
        Holder::Process(name, pid) => (
            format!("{name} (process {pid})"),
            format!("stop it (systemctl status {pid} names its unit)"),
        ),
        Holder::Unknown => ("somebody".to_owned(), "find out who with ss -ltnp".to_owned()),
    };
    Some(Finding::problem_if(
        plan.is_node,
        CHECK,
        format!("{holder} listens at {}, which a kubelet takes; oarsman run does not", port.number),
        format!("{fix}, or write another {} into the kubelet's configuration", port.field),
    ))
}
