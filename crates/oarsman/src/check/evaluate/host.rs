//! Checks the machine's clock and host name.

use jiff::Timestamp;
use oarsman_core::api::validate::node_name_complaints;

use crate::check::finding::Finding;

/// The first of January 2024: a clock that shows an earlier time was never set.
const EARLIEST_TIME: i64 = 1_704_067_200;

pub(super) fn clock(now: Timestamp) -> Finding {
    const CHECK: &str = "clock";
    if now.as_second() >= EARLIEST_TIME {
        return Finding::ok(CHECK, format!("{now:.0}"));
    }
    Finding::problem(
        CHECK,
        format!("{now:.0} is in the past: no registry's certificate will be valid"),
        "timedatectl set-ntp true, or date -s '2026-01-31 12:00:00' with the right time",
    )
}

/// Whether the host name is a valid name of a node.
pub(super) fn name(host_name: &str) -> Finding {
    const CHECK: &str = "host name";
    let name = host_name.trim().to_lowercase();
    let complaints = node_name_complaints(&name);
    if complaints.is_empty() {
        return Finding::ok(CHECK, name);
    }
    Finding::problem(
        CHECK,
        format!("{host_name:?} cannot be the name of a node: {}", complaints.join("; ")),
        "hostnamectl set-hostname NAME, or name the node with --hostname-override",
    )
}
