//! Pods that run, and what may still be wrong with them.

use k8s_openapi::api::core::v1::Pod;

use super::case::Case;
use super::crashes;
use super::manifests;
use super::seen::Seen;
use super::words;
use super::{Cause, Explanation};
use crate::pod::{ContainerKind, PodExt};
use crate::report::StageReport;

pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    let all_run =
        case.containers.iter().filter(|seen| is_lasting(seen)).all(|seen| seen.running().is_some());
    if case.containers.is_empty() || !all_run {
        return None;
    }
    let found = probe(case).or_else(|| gate(case)).or_else(|| manifests::goes_on(case));
    let found = found.or_else(|| host_port(case)).or_else(|| restarted(case));
    Some(found.unwrap_or_else(|| running(case)))
}

/// Whether it is to run as long as the pod does.
fn is_lasting(seen: &Seen<'_>) -> bool {
    matches!(seen.kind, ContainerKind::Regular | ContainerKind::Sidecar)
}

fn running(case: &Case<'_>) -> Explanation {
    let started = case.containers.iter().filter_map(|seen| seen.running()?.started_at.as_ref());
    let since = started.map(|at| at.0).max().map(|at| format!(", for {} now", case.lasting(at)));
    let sentence = format!("The pod runs and is ready{}.", since.unwrap_or_default());
    let main = case.containers.iter().find(|seen| seen.kind == ContainerKind::Regular);
    let logs = main.map_or_else(|| case.describe(), |seen| case.logs(seen.name()));
    Explanation::new(Cause::Running, sentence, format!("Nothing to do. {logs} shows what it says."))
}

/// A container whose probe has not succeeded.
fn probe(case: &Case<'_>) -> Option<Explanation> {
    let slow = |seen: &&Seen<'_>| {
        is_lasting(seen) && !seen.has_started() && seen.spec.startup_probe.is_some()
    };
    let unready = |seen: &&Seen<'_>| {
        is_lasting(seen) && !seen.is_ready() && seen.spec.readiness_probe.is_some()
    };
    let of = |seen: &Seen<'_>, cause, probe: &str| {
        let since = seen.running().and_then(|running| running.started_at.as_ref());
        let since = since.map(|at| case.lasting(at.0)).unwrap_or_default();
        let sentence = format!(
            "{} runs, for {since} now, but its {probe} has not succeeded, so that the pod is not ready: this version of the agent runs no probes.",
            seen.whose()
        );
        let next = format!(
            "Take {} out of {}; whether it works tells {}.",
            seen.field(probe),
            case.place(),
            case.logs(seen.name())
        );
        Explanation::new(cause, sentence, next)
    };
    let slow =
        case.containers.iter().find(slow).map(|seen| of(seen, Cause::NotStarted, "startupProbe"));
    slow.or_else(|| {
        let unready = case.containers.iter().find(unready)?;
        Some(of(unready, Cause::NotReady, "readinessProbe"))
    })
}

/// Conditions that others set, and that keep the pod from being ready.
fn gate(case: &Case<'_>) -> Option<Explanation> {
    let gates = case.pod.spec.as_ref()?.readiness_gates.as_deref().unwrap_or_default();
    let conditions = case.status()?.conditions.as_deref().unwrap_or_default();
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
        words::list(&shut)
    );
    let next = format!(
        "Have whoever keeps that condition set it, or take it out of spec.readinessGates in {}: without an API server nobody can set it.",
        case.place()
    );
    Some(Explanation::new(Cause::ReadinessGate, sentence, next))
}

/// Another pod that wants the same port of this machine.
fn host_port(case: &Case<'_>) -> Option<Explanation> {
    let mine = host_ports(case.pod);
    let others =
        case.node.pods.iter().filter(|other| {
            other.pod.uid() != case.pod.uid() && other.stage == StageReport::Syncing
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
    let next = format!("Give one of the two another hostPort; this one's is in {}.", case.place());
    Some(Explanation::new(Cause::HostPortTaken, sentence, next))
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
fn restarted(case: &Case<'_>) -> Option<Explanation> {
    let seen =
        case.containers.iter().filter(|seen| is_lasting(seen)).find(|seen| seen.restarts() > 0)?;
    let end = seen.last_end()?;
    let since =
        seen.running()?.started_at.as_ref().map(|at| case.lasting(at.0)).unwrap_or_default();
    let now = format!("; it runs again, for {since} now");
    if let Some(killed) = crashes::after_grace(case, seen, end, &now) {
        return Some(killed);
    }
    let sentence = format!(
        "The pod runs and is ready, but {} had to be started again ({} so far): the one before {}{now}.",
        seen.who(),
        words::times(seen.restarts()),
        crashes::how(seen, end)
    );
    let next = format!("Read why it ended: {}.", case.logs_before(seen.name()));
    Some(Explanation::new(Cause::Restarted, sentence, next))
}

/// Nothing is known to be wrong, and not all of it runs yet.
pub(super) fn on_its_way(case: &Case<'_>) -> Explanation {
    let waiting: Vec<String> = case
        .containers
        .iter()
        .filter(|seen| is_lasting(seen) && seen.running().is_none())
        .map(Seen::who)
        .collect();
    let what = match waiting.as_slice() {
        [] => "the pod".to_owned(),
        names => words::list(names),
    };
    let sentence = format!(
        "The pod is on its way: {what} is about to be started, and nothing is wrong so far."
    );
    let next = format!("Ask again in a moment; {} shows what happens.", case.describe());
    Explanation::new(Cause::Starting, sentence, next)
}
