//! Simulations in which the node has too little room: pods request CPU, and together more than there is.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use oarsman_core::resources::pod_requests;
use oarsman_world::rng::{Probability, Rng};

use crate::plan::{ACTION_PERIOD, ExternalAction};
use crate::random_pods::{self, pick};

/// What the node has for pods, in thousandths of a CPU: the two of [`crate::node_status_config`].
pub(crate) const ALLOCATABLE: i64 = 2000;

/// Makes every third plan one with too little room. It draws from numbers of its own, so that all other plans stay as they are.
pub(crate) fn draw(seed: u64, actions: &mut Vec<(Duration, ExternalAction)>) {
    let mut rng = Rng::new(seed).fork("tight node");
    if !rng.happens(Probability::percent(35)) {
        return;
    }
    let name = "t0";
    let more = random_pods::pod(&mut rng, name, &format!("uid-{name}"));
    actions.push((rng.up_to(ACTION_PERIOD / 2), ExternalAction::Create(more)));
    if rng.happens(Probability::percent(50)) {
        let name = "d0";
        let pod = random_pods::pod(&mut rng, name, &format!("uid-{name}"));
        let at = ACTION_PERIOD / 4 + rng.up_to(ACTION_PERIOD / 2);
        let written = Box::new(ExternalAction::WriteManifest(pod));
        actions.push((at, ExternalAction::WhileAgentDown(written)));
    }
    for (_, action) in actions.iter_mut() {
        if let Some(pod) = new_pod(action) {
            request(pod, pick(&mut rng, &["200m", "600m", "1100m", "1500m", "2100m"]));
        }
    }
}

fn new_pod(action: &mut ExternalAction) -> Option<&mut Pod> {
    match action {
        ExternalAction::Create(pod) | ExternalAction::WriteManifest(pod) => Some(pod),
        ExternalAction::WhileAgentDown(action) => new_pod(action),
        _ => None,
    }
}

fn request(pod: &mut Pod, cpu: &str) {
    let requests = BTreeMap::from([("cpu".to_owned(), Quantity(cpu.to_owned()))]);
    let resources = ResourceRequirements { requests: Some(requests), ..Default::default() };
    if let Some(container) = pod.spec.get_or_insert_default().containers.first_mut() {
        container.resources = Some(resources);
    }
}

/// What a pod requests, in thousandths of a CPU.
pub(crate) fn requested(pod: &Pod) -> i64 {
    pod_requests(pod).get("cpu").map_or(0, |cpu| cpu.millis())
}
