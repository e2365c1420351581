//! The status of a pod in the API, made from the runtime's state each time. In the Go kubelet this is `generateAPIPodStatus`.
//!
//! The way of a status: [`generate`] makes it, [`merge::merge`] puts it over the API server's copy, and
//! [`merge::differs`] tells whether there is anything to send, and [`patch::patch`] what. A pod that was turned away has the short one of
//! [`rejected`].

pub mod deadline;
pub mod merge;
pub mod patch;
pub mod phase;
pub mod queue;
pub mod recall;
pub mod rejected;

mod addresses;
mod conditions;
mod containers;
pub(crate) mod questions;
pub(crate) mod scene;
mod stamp;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::ids::ContainerId;
use crate::lifecycle::{Standing, Verdict, VerdictKind};
use crate::node::NodeFacts;
use crate::probe::ProbeResults;
use crate::qos;
use crate::start_error::StartError;
use crate::view::PodView;

use scene::Scene;

/// What a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
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
    pub last_words: &'a BTreeMap<ContainerId, String>,
    /// What about the node goes into every status.
    pub node: &'a NodeFacts,
    /// How far the pod has come on its way out; none while it is kept running.
    pub standing: Option<Standing>,
    /// Why the node ended it.
    pub verdict: Option<&'a Verdict>,
    /// Wall time.
    pub now: Timestamp,
}

/// The pod's status.
pub fn generate(input: &Input<'_>) -> PodStatus {
    if let Some(verdict) = input.verdict.filter(|verdict| verdict.kind == VerdictKind::Rejected) {
        return rejected::status(input.pod, verdict, input.previous, input.now);
    }
    let scene = Scene::new(input);
    let mut status = skeleton(&scene);
    if input.standing == Some(Standing::Released) {
        terminal::end_containers(input.pod, &mut status);
    }
    phase::settle(&scene, &mut status);
    status.conditions = Some(conditions::all(&scene, &status));
    stamp::normalise(input.pod, &mut status);
    status
}

/// Everything but the phase and what follows from it.
fn skeleton(scene: &Scene<'_>) -> PodStatus {
    let lists = containers::lists(scene);
    let mut status = PodStatus {
        observed_generation: scene.pod.metadata.generation,
        qos_class: Some(qos::class(scene.pod).to_string()),
        start_time: Some(scene.start_time()),
        container_statuses: some(lists.regular),
        init_container_statuses: some(lists.init),
        ephemeral_container_statuses: some(lists.ephemeral),
        ..PodStatus::default()
    };
    addresses::fill(scene, &mut status);
    status
}

/// The API server drops empty lists, so that saying one would look like a difference for ever.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}
