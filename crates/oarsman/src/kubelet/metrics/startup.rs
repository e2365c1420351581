//! How long the node took from its boot until it was ready.

use std::time::Duration;

use oarsman_core::exposition::{Exposition, MetricKind};
use oarsman_core::node::startup::NodeStartupDurations;

/// Writes the steps that are over, of a node that this agent registered. `pre_kubelet` is the age of the machine when the agent was
/// started.
pub(super) fn write_node_startup(
    durations: &NodeStartupDurations,
    pre_kubelet: Option<Duration>,
    out: &mut Exposition,
) {
    let NodeStartupDurations { pre_registration, registration, post_registration } = *durations;
    let pre_kubelet = registration.and(pre_kubelet);
    let rows = [
        ("pre_kubelet_duration", "Time from the boot until the agent was started.", pre_kubelet),
        (
            "pre_registration_duration",
            "Time from the start of the agent until it first registered the node.",
            pre_registration,
        ),
        ("registration_duration", "Time until the node was registered.", registration),
        (
            "post_registration_duration",
            "Time from the registration of the node until it was ready.",
            post_registration,
        ),
        (
            "duration",
            "Time from the boot until the node was ready.",
            pre_kubelet.and_then(|pre_kubelet| durations.total(pre_kubelet)),
        ),
    ];
    for (name, help, duration) in rows {
        if let Some(duration) = duration {
            let name = format!("kubelet_node_startup_{name}_seconds");
            out.single(&name, MetricKind::Gauge, help, duration.as_secs_f64());
        }
    }
}
