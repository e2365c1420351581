//! Tests of whole statuses: facts in, words out.

mod conditions;
mod containers;
mod ending;
mod phase;
mod properties;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodCondition, PodStatus};

use super::container_status_ext::ContainerStatusExt;
use super::{PodStatusInput, generate_api_pod_status};
use crate::features::FeatureGates;
use crate::fixture::{ViewBuilder, at, pod, view};
use crate::ids::ContainerId;
use crate::lifecycle::{PodFailure, TerminationStage};
use crate::node::NodeFacts;
use crate::probe::{ProbeKind, ProbeResult, ProbeResults};
use crate::start_error::{StartError, StartReason};
use crate::view::{ContainerView, PodView};

/// Everything a status is made from, owned.
#[derive(Clone)]
struct StatusFixture {
    pod: Pod,
    view: PodView,
    previous: Option<PodStatus>,
    start_errors: BTreeMap<String, StartError>,
    held_by: Option<&'static str>,
    probes: ProbeResults,
    termination_messages: BTreeMap<ContainerId, String>,
    node: NodeFacts,
    resize_infeasible: bool,
    termination: Option<TerminationStage>,
    failure: Option<PodFailure>,
    second: i64,
}

/// A pod and what the runtime holds of it, 50 seconds into the test, on the node 192.168.0.1.
fn status_fixture(pod: Pod, build: impl FnOnce(ViewBuilder) -> ViewBuilder) -> StatusFixture {
    let node = NodeFacts {
        runtime_name: "containerd".to_owned(),
        host_ips: vec!["192.168.0.1".to_owned()],
        recursive_read_only: true,
        features: FeatureGates::default(),
    };
    StatusFixture {
        view: build(view(&pod)).build(),
        pod,
        previous: None,
        start_errors: BTreeMap::new(),
        held_by: None,
        probes: ProbeResults::default(),
        termination_messages: BTreeMap::new(),
        node,
        resize_infeasible: false,
        termination: None,
        failure: None,
        second: 50,
    }
}

impl StatusFixture {
    fn status(&self) -> PodStatus {
        generate_api_pod_status(&PodStatusInput {
            pod: &self.pod,
            view: &self.view,
            previous: self.previous.as_ref(),
            start_errors: &self.start_errors,
            held_by: self.held_by,
            probes: &self.probes,
            termination_messages: &self.termination_messages,
            node: &self.node,
            resize_infeasible: self.resize_infeasible,
            termination: self.termination,
            failure: self.failure.as_ref(),
            now: at(self.second),
        })
    }

    /// A second later, with what was said remembered and the runtime holding something else.
    fn then(&self, build: impl FnOnce(ViewBuilder) -> ViewBuilder) -> Self {
        let view = build(view(&self.pod)).build();
        Self { view, previous: Some(self.status()), second: self.second + 1, ..self.clone() }
    }

    fn after(self, previous: PodStatus) -> Self {
        Self { previous: Some(previous), ..self }
    }

    fn termination(self, termination: TerminationStage) -> Self {
        Self { termination: Some(termination), ..self }
    }

    fn failing(mut self, name: &str, reason: StartReason) -> Self {
        let message = format!("{name} cannot start");
        self.start_errors.insert(name.to_owned(), StartError { reason, message });
        self
    }

    fn probed(mut self, id: &str, kind: ProbeKind, result: ProbeResult) -> Self {
        self.probes.set(id.into(), kind, result);
        self
    }
}

/// How a container stands, in a few words: `running`, `waiting REASON`, `ended CODE REASON`.
fn describe_state(state: Option<&ContainerState>) -> String {
    let Some(state) = state else { return "nothing".to_owned() };
    match (&state.running, &state.waiting, &state.terminated) {
        (Some(_), ..) => "running".to_owned(),
        (_, Some(waiting), _) => format!("waiting {}", waiting.reason.as_deref().unwrap_or("?")),
        (.., Some(end)) => {
            format!("ended {} {}", end.exit_code, end.reason.as_deref().unwrap_or("?"))
        }
        _ => "nothing".to_owned(),
    }
}

/// State, last state and restart count of the container of that name.
fn container_state(status: &PodStatus, name: &str) -> (String, String, i32) {
    let container = container(status, name);
    let (now, before) =
        (describe_state(container.state.as_ref()), describe_state(container.last_state.as_ref()));
    (now, before, container.restart_count)
}

fn container<'a>(status: &'a PodStatus, name: &str) -> &'a ContainerStatus {
    all(status).find(|container| container.name == name).unwrap()
}

fn all(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let lists = [
        &status.init_container_statuses,
        &status.container_statuses,
        &status.ephemeral_container_statuses,
    ];
    lists.into_iter().flatten().flatten()
}

fn condition<'a>(status: &'a PodStatus, kind: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

/// `STATUS REASON MESSAGE`, as much of it as there is.
fn describe_condition(status: &PodStatus, kind: &str) -> String {
    let Some(condition) = condition(status, kind) else { return "nothing".to_owned() };
    let parts = [Some(&condition.status), condition.reason.as_ref(), condition.message.as_ref()];
    parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")
}

/// Another container than the one that had its place, in a view that was built anew.
fn another(container: &mut ContainerView) {
    container.label.restart_count += 1;
    container.id = format!("{}-{}", container.name, container.label.restart_count).into();
}

/// A pod with one regular container.
fn one(policy: &str) -> Pod {
    pod().policy(policy).regular("app").build()
}
