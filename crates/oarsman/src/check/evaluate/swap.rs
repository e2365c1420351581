//! Checks whether swap is on where a kubelet would refuse it.

use crate::check::finding::Finding;
use crate::check::requirements::Requirements;
use crate::machine::swap::SwapDevice;

const CHECK: &str = "swap";

pub(super) fn evaluate(swaps: &[SwapDevice], requirements: &Requirements) -> Vec<Finding> {
    if swaps.is_empty() {
        return vec![Finding::ok(CHECK, "none is on")];
    }
    let named = |swap: &SwapDevice| format!("{} ({} MiB)", swap.name, swap.kilobytes / 1024);
    let names = swaps.iter().map(named).collect::<Vec<_>>().join(", ");
    if !requirements.fails_on_swap {
        return vec![Finding::ok(CHECK, format!("{names} is on, which the configuration allows"))];
    }
    vec![Finding::problem_if(
        requirements.is_node,
        CHECK,
        format!("{names} is on: oarsman run takes it, a kubelet refuses it by default"),
        "swapoff -a, and take the line out of /etc/fstab; or write failSwapOn: false into the kubelet's configuration",
    )]
}
