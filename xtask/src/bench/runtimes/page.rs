//! Writes docs/bench-runtimes.md, which compares the embedded runtime with containerd and runc.

use std::fmt::Write;

use super::RuntimesSize;
use super::figures::{BothRuntimes, RuntimeBound, RuntimeFigures, RuntimeRow, rows};

/// The whole page.
pub(super) fn page(
    [containerd, runc, oarsman]: &[String; 3],
    size: RuntimesSize,
    both: &BothRuntimes<RuntimeFigures>,
) -> String {
    let RuntimesSize { rounds, singles, bursts, idle, window, .. } = size;
    let [few, many] = bursts;
    format!(
        "# The embedded runtime beside containerd\n\n\
         Written by `cargo xtask bench --runtimes`: do not edit this page. A release build of `oarsman cri` and containerd with runc serve CRI on one \
         machine, in turns, and get the same calls for the same pods, with no kubelet: {rounds} rounds of {singles} pods one after the other and of {few} \
         and {many} at once; medians of all rounds. A pod is a sandbox with a network and one container that waits and ends at once when \
         asked to. A start ends when its container runs, a delete when container and sandbox are removed. Memory is that of all processes \
         but the workloads with {idle} pods, less that without pods; processor time is that of the same processes over {} s. The programs of containerd \
         are itself, its shim and runc, without CNI plugins; of the embedded runtime it is the whole agent.\n\n{}\n\
         Measured with:\n\n- {containerd}\n- {runc}\n- {oarsman}\n",
        window.as_secs(),
        table(&rows(both, bursts, idle)),
    )
}

fn table(rows: &[RuntimeRow]) -> String {
    let mut text = "| what | containerd with runc | embedded | ratio | target | reached |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let target = match row.bound {
            RuntimeBound::OfContainerd(share) => format!("{share} of containerd"),
            RuntimeBound::Absolute(most) => most.to_string(),
            RuntimeBound::None => String::new(),
        };
        let reached = match row.is_reached() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        // Writing to a string does not fail.
        writeln!(
            text,
            "| {} | {:.3} | {:.3} | {:.2} | {target} | {reached} |",
            row.what,
            row.containerd,
            row.embedded,
            row.ratio()
        )
        .ok();
    }
    text
}
