//! Pods that run, and what may still be wrong with them.

use k8s_openapi::api::core::v1::Pod;

use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::crashes;
use super::manifests;
use super::phrases;
use super::probes;
use super::{Explanation, ExplanationCause};
use crate::pod::{ContainerKind, PodExt};
use crate::probe::ProbeKind;
use crate::report::StageReport;

pub(super) fn explain(context: &ExplainContext<'_>) -> Option<Explanation> {
    let all_run = context
        .containers
        .iter()
        .filter(|seen| is_lasting(seen))
        .all(|seen| seen.running().is_some());
    if context.containers.is_empty() || !all_run {
        return None;
    }
    let found =
        probe(context).or_else(|| gate(context)).or_else(|| manifests::runs_old_manifest(context));
    let found = found.or_else(|| host_port(context)).or_else(|| restarted(context));
    let found = found.or_else(|| firewall(context));
    Some(found.unwrap_or_else(|| running(context)))
}

/// Whether it is to run as long as the pod does.
fn is_lasting(seen: &ContainerSnapshot<'_>) -> bool {
    matches!(seen.kind, ContainerKind::Regular | ContainerKind::Sidecar)
}

fn running(context: &ExplainContext<'_>) -> Explanation {
    let started = context.containers.iter().filter_map(|seen| seen.running()?.started_at.as_ref());
    let since =
        started.map(|at| at.0).max().map(|at| format!(", for {} now", context.human_duration(at)));
    let sentence = format!("The pod runs and is ready{}.", since.unwrap_or_default());
    let main = context.containers.iter().find(|seen| seen.kind == ContainerKind::Regular);
    let logs = main.map_or_else(|| context.describe(), |seen| context.logs(seen.name()));
    Explanation::new(
        ExplanationCause::Running,
        sentence,
        format!("Nothing to do. {logs} shows what it says."),
    )
}

/// A container whose probe has not succeeded.
fn probe(context: &ExplainContext<'_>) -> Option<Explanation> {
    let slow = |seen: &&ContainerSnapshot<'_>| {
        is_lasting(seen) && !seen.has_started() && seen.spec.startup_probe.is_some()
    };
    let unready = |seen: &&ContainerSnapshot<'_>| {
        is_lasting(seen) && !seen.is_ready() && seen.spec.readiness_probe.is_some()
    };
    let of = |seen: &ContainerSnapshot<'_>, cause, kind: ProbeKind| {
        let since = seen.running().and_then(|running| running.started_at.as_ref());
        let since = since.map(|at| context.human_duration(at.0)).unwrap_or_default();
        let sentence = format!(
            "{} runs, for {since} now, but its {} has not succeeded, so that the pod is not ready: {}.",
            seen.capitalized_label(),
            kind.field(),
            probes::last_answer(context, seen.name(), kind)
        );
        Explanation::new(cause, sentence, probes::next_step(context, seen, kind))
    };
    let slow = context
        .containers
        .iter()
        .find(slow)
        .map(|seen| of(seen, ExplanationCause::NotStarted, ProbeKind::Startup));
    slow.or_else(|| {
        let unready = context.containers.iter().find(unready)?;
        Some(of(unready, ExplanationCause::NotReady, ProbeKind::Readiness))
    })
}

/// Conditions that others set, and that keep the pod from being ready.
fn gate(context: &ExplainContext<'_>) -> Option<Explanation> {
    let gates = context.pod.spec.as_ref()?.readiness_gates.as_deref().unwrap_or_default();
    let conditions = context.status()?.conditions.as_deref().unwrap_or_default();
    let is_open = |gate: &str| conditions.iter().any(|it| it.type_ == gate && it.status == "True");
    let shut: Vec<String> = gates
        .iter()
        .filter(|gate| !is_open(&gate.condition_type))
        .map(|gate| gate.condition_type.clone())
        .collect();
    if shut.is_empty() {
        return None;
    }
    let sentence = format!(
        "All containers run, but the pod is not ready: nobody has set the condition {} to True, which its readiness gates wait for.",
        phrases::list(&shut)
    );
    let next = format!(
        "Have whoever keeps that condition set it, or take it out of spec.readinessGates in {}: without an API server nobody can set it.",
        context.manifest_path()
    );
    Some(Explanation::new(ExplanationCause::ReadinessGate, sentence, next))
}

/// Another pod that wants the same port of this machine.
fn host_port(context: &ExplainContext<'_>) -> Option<Explanation> {
    let mine = host_ports(context.pod);
    let others = context.node.pods.iter().filter(|other| {
        other.pod.uid() != context.pod.uid() && other.stage == StageReport::Syncing
    });
    let (port, other) = others
        .flat_map(|other| host_ports(&other.pod).into_iter().map(move |port| (port, other)))
        .find(|(port, _)| mine.contains(port))?;
    let sentence = format!(
        "The pod runs, but pod {} wants port {} ({}) of this machine too, so that only one of them is reached there.",
        other.pod.full_name().name,
        port.0,
        port.1
    );
    let next = format!(
        "Give one of the two another hostPort; this one's is in {}.",
        context.manifest_path()
    );
    Some(Explanation::new(ExplanationCause::HostPortTaken, sentence, next))
}

/// A firewall that the runtime cannot override. Pods on the node's own network are not concerned.
fn firewall(context: &ExplainContext<'_>) -> Option<Explanation> {
    let is_on_host = context.pod.spec.as_ref().and_then(|spec| spec.host_network);
    let obstacle = context.node.runtime.traffic_obstacle.as_ref()?;
    let sentence = format!("The pod runs, but {}.", obstacle.problem);
    let next = format!("{}.", phrases::capitalized(&obstacle.fix));
    (is_on_host != Some(true))
        .then(|| Explanation::new(ExplanationCause::FirewallDrops, sentence, next))
}

fn host_ports(pod: &Pod) -> Vec<(i32, String)> {
    let ports = pod.regular().iter().flat_map(|container| container.ports.iter().flatten());
    let port = |port: &k8s_openapi::api::core::v1::ContainerPort| {
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
        Some((port.host_port.filter(|port| *port > 0)?, protocol))
    };
    ports.filter_map(port).collect()
}

/// A container that runs after it ended.
fn restarted(context: &ExplainContext<'_>) -> Option<Explanation> {
    let seen = context
        .containers
        .iter()
        .filter(|seen| is_lasting(seen))
        .find(|seen| seen.restarts() > 0)?;
    let end = seen.last_end()?;
    let since = seen
        .running()?
        .started_at
        .as_ref()
        .map(|at| context.human_duration(at.0))
        .unwrap_or_default();
    let now = format!("; it runs again, for {since} now");
    if let Some(killed) = crashes::after_grace(context, seen, end, &now) {
        return Some(killed);
    }
    let sentence = format!(
        "The pod runs and is ready, but {} had to be started again ({} so far): the one before {}{now}.",
        seen.label(),
        phrases::count(seen.restarts()),
        crashes::describe_end(seen, end)
    );
    let next = format!("Read why it ended: {}.", context.logs_before(seen.name()));
    Some(Explanation::new(ExplanationCause::Restarted, sentence, next))
}

/// Nothing is known to be wrong, and not all of it runs yet.
pub(super) fn on_its_way(context: &ExplainContext<'_>) -> Explanation {
    let waiting: Vec<String> = context
        .containers
        .iter()
        .filter(|seen| is_lasting(seen) && seen.running().is_none())
        .map(ContainerSnapshot::label)
        .collect();
    let what = match waiting.as_slice() {
        [] => "the pod".to_owned(),
        names => phrases::list(names),
    };
    let sentence = format!(
        "The pod is on its way: {what} is about to be started, and nothing is wrong so far."
    );
    let next = format!("Ask again in a moment; {} shows what happens.", context.describe());
    Explanation::new(ExplanationCause::Starting, sentence, next)
}
