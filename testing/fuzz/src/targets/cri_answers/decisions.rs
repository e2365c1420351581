//! The decisions that are made from what the runtime holds.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::actions::{PodActionsInput, compute_pod_actions, dead_containers, teardown};
use oarsman_core::api::defaults::set_defaults;
use oarsman_core::backoff::CrashBackoff;
use oarsman_core::cri_spec::ImageUser;
use oarsman_core::gc::containers::{
    ContainerGcInput, ContainerGcPolicy, containers_to_remove, sandboxes_to_remove,
};
use oarsman_core::node::NodeFacts;
use oarsman_core::probe::ProbeResults;
use oarsman_core::status::merge::{differs, merge};
use oarsman_core::status::patch::patch;
use oarsman_core::status::{PodStatusInput, generate_api_pod_status};
use oarsman_core::time::{Mono, Now};
use oarsman_core::view::PodView;
use oarsman_cri_types::v1;
use serde_json::json;

pub(super) fn of_views(views: &[PodView]) {
    let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * 365 * 56);
    for view in views {
        of_view(view, now);
    }
    let kept = BTreeSet::new();
    let input = ContainerGcInput { views, kept: &kept, sources_ready: true, now };
    let all: usize = views.iter().map(|view| view.containers.len()).sum();
    let removed = containers_to_remove(&input, &ContainerGcPolicy::default());
    assert!(removed.len() <= all, "more containers are removed than there are");
    drop(sandboxes_to_remove(&input));
}

fn of_view(view: &PodView, now: Timestamp) {
    let (probes, backoff) = (ProbeResults::default(), CrashBackoff::default());
    let (errors, messages, node) = (BTreeMap::new(), BTreeMap::new(), NodeFacts::default());
    for pod in pods(view) {
        let status = generate_api_pod_status(&PodStatusInput {
            resize_infeasible: false,
            pod: &pod,
            view,
            previous: None,
            start_errors: &errors,
            held_by: None,
            probes: &probes,
            termination_messages: &messages,
            node: &node,
            termination: None,
            failure: None,
            now,
        });
        let merged = merge(&status, &status, false, now);
        assert!(!differs(&merged, &merge(&merged, &status, false, now)), "a status never settles");
        assert!(patch(&Default::default(), &status).is_ok(), "a status cannot be written");
        let now = Now { wall: now, mono: Mono::default() };
        let published = Some(&status);
        let (probes, backoff) = (&probes, &backoff);
        drop(compute_pod_actions(&PodActionsInput {
            pod: &pod,
            view,
            probes,
            backoff,
            published,
            dead_kept: 1,
            now,
        }));
        drop(teardown(Some(&pod), view, Some(i64::MAX)));
    }
    drop(teardown(None, view, None));
    assert!(dead_containers(view, true).len() <= view.containers.len(), "dead from nowhere");
}

/// What the pod of a view may look like: with the containers that the view has, and with one of each kind.
fn pods(view: &PodView) -> Vec<Pod> {
    let names: BTreeSet<&str> = view.containers.iter().map(|it| it.name.as_str()).collect();
    let listed: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    let fixed = json!({
        "initContainers": [{ "name": "i" }, { "name": "s", "restartPolicy": "Always" }],
        "containers": [{ "name": "a" }, { "name": "b" }],
        "ephemeralContainers": [{ "name": "e" }],
        "restartPolicy": "OnFailure",
    });
    let specs = [json!({ "containers": listed }), fixed];
    let uid = view.uid.as_str();
    let metadata = json!({ "name": "a", "namespace": "n", "uid": uid });
    let pod = |spec| serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).ok();
    let mut pods: Vec<Pod> = specs.into_iter().filter_map(pod).collect();
    pods.iter_mut().for_each(set_defaults);
    pods
}

pub(super) fn of_images(images: &[v1::Image]) {
    for image in images {
        drop(ImageUser::from(image));
    }
}
