//! Small scenarios in a few lines: a pod, the actions on it, and the world's trace of it by name.

mod scenario_log;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, ExecAction, Lifecycle, LifecycleHandler, Pod, PodSpec, SleepAction,
};
use oarsman_agent::CoreDecisions;
use oarsman_core::event::PodEvent;
use oarsman_world::faults::FaultPlan;

use crate::random_pods::PRESENT;
use crate::{ExternalAction, SimulationPlan, SimulationResult, run};

pub use scenario_log::ScenarioLog;

/// The second in which the pod of a scenario is created.
pub const CREATED_AT: u64 = 1;

/// An image that needs the credentials `rower` with password `oar`.
pub const PRIVATE: &str = "reg.world/private:1";

/// A container that runs this script.
pub fn container(name: &str, script: &[&str]) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(PRESENT.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(script.iter().map(|&step| step.to_owned()).collect()),
        ..Container::default()
    }
}

/// The same with this postStart hook.
#[must_use]
pub fn with_post_start(mut container: Container, hook: LifecycleHandler) -> Container {
    container.lifecycle.get_or_insert_default().post_start = Some(hook);
    container
}

/// The same with this preStop hook.
#[must_use]
pub fn with_pre_stop(container: Container, hook: LifecycleHandler) -> Container {
    let hooks = container.lifecycle.clone().unwrap_or_default();
    Container { lifecycle: Some(Lifecycle { pre_stop: Some(hook), ..hooks }), ..container }
}

/// The same as a sidecar.
#[must_use]
pub fn sidecar(container: Container) -> Container {
    Container { restart_policy: Some("Always".to_owned()), ..container }
}

/// A hook that runs this script in the container.
pub fn exec(script: &[&str]) -> LifecycleHandler {
    let command = ["/script"].iter().chain(script).map(|&step| step.to_owned());
    LifecycleHandler {
        exec: Some(ExecAction { command: Some(command.collect()) }),
        ..LifecycleHandler::default()
    }
}

/// A hook that sleeps.
pub fn sleep(seconds: i64) -> LifecycleHandler {
    LifecycleHandler { sleep: Some(SleepAction { seconds }), ..LifecycleHandler::default() }
}

/// The pod `p` with restart policy Always, these containers and this grace period in seconds.
pub fn pod(init: Vec<Container>, regular: Vec<Container>, grace: i64) -> Pod {
    let mut pod = Pod {
        spec: Some(PodSpec {
            containers: regular,
            init_containers: Some(init).filter(|init| !init.is_empty()),
            restart_policy: Some("Always".to_owned()),
            termination_grace_period_seconds: Some(grace),
            ..PodSpec::default()
        }),
        ..Pod::default()
    };
    pod.metadata.name = Some("p".to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.metadata.uid = Some("uid-p".to_owned());
    pod
}

/// The deletion of the pod `p`.
pub fn delete(grace: Option<i64>) -> ExternalAction {
    ExternalAction::Delete { pod: "p".to_owned(), grace }
}

/// Simulates the pod in a world without faults, in which calls take no time.
///
/// # Errors
/// When the thread's event loop cannot be made.
pub fn run_pod(pod: Pod, actions: &[(u64, ExternalAction)]) -> io::Result<SimulationResult> {
    let later = actions.iter().map(|(at, action)| (Duration::from_secs(*at), action.clone()));
    let actions = std::iter::once((Duration::from_secs(CREATED_AT), ExternalAction::Create(pod)))
        .chain(later)
        .collect();
    let plan = SimulationPlan { seed: 1, faults: FaultPlan::quiet(), actions, kills: Vec::new() };
    run(&plan, Arc::new(CoreDecisions))
}

/// The events of the pod with this reason, and their seconds.
pub fn events_with_reason<'a>(
    result: &'a SimulationResult,
    reason: &str,
) -> Vec<(u64, &'a PodEvent)> {
    let events = result.events.iter().filter(|recorded| recorded.event.reason == reason);
    events.map(|recorded| (recorded.at.as_secs(), &recorded.event)).collect()
}

/// The waiting states of a container: the second in which each was first published, reason and message.
pub fn waiting_states(result: &SimulationResult, container: &str) -> Vec<(u64, String, String)> {
    let mut waits: Vec<(u64, String, String)> = Vec::new();
    for published in &result.statuses {
        let lists =
            [&published.status.container_statuses, &published.status.init_container_statuses];
        let mut all = lists.into_iter().flatten().flatten();
        let state = all.find(|status| status.name == container).and_then(|s| s.state.as_ref());
        let waiting = state.and_then(|state| state.waiting.clone()).unwrap_or_default();
        let (reason, message) = (waiting.reason.unwrap_or_default(), waiting.message);
        if waits.last().is_none_or(|(_, last, _)| *last != reason) {
            waits.push((published.at.as_secs(), reason, message.unwrap_or_default()));
        }
    }
    waits.retain(|(_, reason, _)| !reason.is_empty());
    waits
}

/// The same without the states before the first start, which are published of slow containers only.
pub fn start_failures(result: &SimulationResult, container: &str) -> Vec<(u64, String, String)> {
    let usual = ["ContainerCreating", "PodInitializing"];
    let waits = waiting_states(result, container).into_iter();
    waits.filter(|(_, reason, _)| !usual.contains(&reason.as_str())).collect()
}
