//! The status of a pod in the API, made from the runtime's state each time. In the Go kubelet this is `generateAPIPodStatus`.
//!
//! The way of a status: [`generate_api_pod_status`] makes it, [`merge::merge`] puts it over the API server's copy, and
//! [`merge::differs`] tells whether there is anything to send, and [`patch::patch`] what. A pod that was turned away has the short one of
//! [`rejected`].

pub mod deadline;
pub mod merge;
pub mod patch;
pub mod phase;
pub mod probe_recovery;
pub mod queue;
pub mod rejected;
pub mod startup;

mod addresses;
mod conditions;
pub(crate) mod container_status_ext;
mod containers;
pub(crate) mod context;
mod normalise;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::ids::ContainerId;
use crate::lifecycle::{PodFailure, PodFailureKind, TerminationStage};
use crate::node::NodeFacts;
use crate::probe::ProbeResults;
use crate::qos;
use crate::start_error::StartError;
use crate::view::PodView;

use context::StatusContext;

/// What a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct PodStatusInput<'a> {
    /// The pod as it is wanted, with the API server's copy of its status.
    pub pod: &'a Pod,
    /// The runtime's state of the pod.
    pub view: &'a PodView,
    /// The status published last; none after a start of the agent, when the API server's copy is used instead.
    pub previous: Option<&'a PodStatus>,
    /// Why containers have not been started, by their names: the last failed try, or the wait for the next.
    pub start_errors: &'a BTreeMap<String, StartError>,
    /// Why nothing of the pod is started yet, as a sentence: its volumes, its network, its sandbox.
    pub held_by: Option<&'a str>,
    /// What probes have found.
    pub probes: &'a ProbeResults,
    /// The termination messages of containers that have ended, as `termination_message` read them.
    pub termination_messages: &'a BTreeMap<ContainerId, String>,
    /// What about the node goes into every status.
    pub node: &'a NodeFacts,
    /// Whether the spec asks for other resources than the pod was given, and will not get them.
    pub resize_infeasible: bool,
    /// How far the pod has come on its way out; none while it is kept running.
    pub termination: Option<TerminationStage>,
    /// Why the node ended it.
    pub failure: Option<&'a PodFailure>,
    /// The wall time, for timestamps of conditions.
    pub now: Timestamp,
}

/// The status that is published for a pod, from its spec, what runs of it and what was published before.
pub fn generate_api_pod_status(input: &PodStatusInput<'_>) -> PodStatus {
    if let Some(failure) = input.failure.filter(|failure| failure.kind == PodFailureKind::Rejected)
    {
        return rejected::status(input.pod, failure, input.previous, input.now);
    }
    let context = StatusContext::new(input);
    let mut status = status_without_phase(&context);
    if input.termination == Some(TerminationStage::Released) {
        terminal::end_containers(input.pod, &mut status);
    }
    phase::set_phase(&context, &mut status);
    status.conditions = Some(conditions::all(&context, &status));
    normalise::normalise_status(input.pod, &mut status);
    status
}

/// Everything but the phase and what follows from it.
fn status_without_phase(context: &StatusContext<'_>) -> PodStatus {
    let lists = containers::lists(context);
    let mut status = PodStatus {
        observed_generation: context.pod.metadata.generation,
        qos_class: Some(qos::class(context.pod).to_string()),
        start_time: Some(context.start_time()),
        container_statuses: some(lists.regular),
        init_container_statuses: some(lists.init),
        ephemeral_container_statuses: some(lists.ephemeral),
        ..PodStatus::default()
    };
    addresses::fill(context, &mut status);
    status
}

/// The API server drops empty lists, so that saying one would look like a difference for ever.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}
