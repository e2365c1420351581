//! One line of text for each pod: the operation under way, that it runs, or why it does not.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerPort, Pod};
use oarsman_core::explain::{ExplanationCause, explain};
use oarsman_core::pod::PodExt;
use oarsman_core::report::{Activity, NodeReport, PodReport, StageReport};
use oarsman_core::status::phase::Phase;

#[cfg(test)]
mod tests;

/// The line of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodLine {
    /// Its name.
    pub(super) pod: String,
    /// The state with elapsed or remaining seconds, for a display that is redrawn.
    pub(super) text: String,
    /// The state without seconds, for output that is printed once.
    pub(super) stable_text: String,
    /// Changes whenever `stable_text` should be printed again.
    pub(super) key: String,
    pub(super) condition: PodCondition,
}

/// The condition of a pod, by which its line is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodCondition {
    InProgress,
    Healthy,
    Failing,
}

/// A line for every pod.
pub(super) fn lines(node: &NodeReport) -> Vec<PodLine> {
    node.pods.iter().map(|pod| line(node, pod)).collect()
}

fn line(node: &NodeReport, pod: &PodReport) -> PodLine {
    let name = short_name(pod);
    if let Some(busy) = busy(pod) {
        let since = pod.doing.as_ref().map(|doing| span(doing.since, node.now));
        let text = since.map_or_else(|| busy.clone(), |since| format!("{busy}{since}"));
        return PodLine {
            pod: name,
            text,
            key: busy.clone(),
            stable_text: busy,
            condition: PodCondition::InProgress,
        };
    }
    let (text, key, condition) = describe_state(node, pod);
    PodLine { pod: name, stable_text: text.clone(), text, key, condition }
}

/// The operation under way, if it matters most.
fn busy(pod: &PodReport) -> Option<String> {
    let doing = pod.doing.as_ref().map(|doing| &doing.what);
    let said = match (pod.stage, doing) {
        (StageReport::Waiting, _) => "waiting until the pod of its name is gone".to_owned(),
        (StageReport::Terminating, Some(Activity::PreStop)) => {
            "stopping: its preStop hook runs".to_owned()
        }
        (StageReport::Terminating | StageReport::Terminated | StageReport::Finished, _)
            if pod.leaving =>
        {
            "stopping".to_owned()
        }
        (StageReport::Terminating | StageReport::Terminated, _) => "ending".to_owned(),
        (StageReport::Finished, _) | (_, None | Some(Activity::Looking)) => return None,
        (StageReport::Syncing, Some(Activity::Pulling(image))) => format!("pulling {image}"),
        (StageReport::Syncing, Some(Activity::WaitingToPull(image))) => {
            format!("waiting to pull {image}")
        }
        (StageReport::Syncing, Some(Activity::PostStart)) => {
            "starting: its postStart hook runs".to_owned()
        }
        (StageReport::Syncing, Some(Activity::PreStop | Activity::Stopping(_))) => {
            "stopping a container".to_owned()
        }
        (StageReport::Syncing, Some(_)) => "starting".to_owned(),
    };
    Some(said)
}

/// The state of a pod without an operation under way: two texts and the condition.
fn describe_state(node: &NodeReport, pod: &PodReport) -> (String, String, PodCondition) {
    let explanation = explain(node, pod);
    let phase = pod.pod.status.as_ref().and_then(Phase::of);
    let (said, condition) = match (explanation.cause, phase) {
        (ExplanationCause::Starting, Some(Phase::Running)) => {
            ("running".to_owned(), PodCondition::Healthy)
        }
        (ExplanationCause::Starting, _) => ("starting".to_owned(), PodCondition::InProgress),
        (ExplanationCause::Running | ExplanationCause::Restarted, _) => {
            (running(pod), PodCondition::Healthy)
        }
        (ExplanationCause::FirewallDrops, _) => {
            let said = format!(
                "{}; a firewall drops its packets: oarsman explain {}",
                running(pod),
                short_name(pod)
            );
            (said, PodCondition::Failing)
        }
        (_, Some(Phase::Succeeded)) => ("done".to_owned(), PodCondition::Healthy),
        (cause, _) => {
            let key = format!("{} {}", cause.slug(), restarts(pod));
            return (explanation.sentence, key, PodCondition::Failing);
        }
    };
    (said.clone(), said, condition)
}

fn running(pod: &PodReport) -> String {
    let address = pod.pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
    let address = address.filter(|address| !address.is_empty());
    let at = address.map(|address| format!(" at {}", with_ports(address, &ports(&pod.pod))));
    let at = at.unwrap_or_default();
    let again = match restarts(pod) {
        0 => String::new(),
        1 => ", after 1 restart".to_owned(),
        several => format!(", after {several} restarts"),
    };
    format!("running{at}{again}")
}

/// The ports that its containers name, as far as `curl` could reach them.
fn ports(pod: &Pod) -> Vec<i32> {
    let ports = pod.regular().iter().flat_map(|container| container.ports.iter().flatten());
    let is_tcp = |port: &&ContainerPort| port.protocol.as_deref().unwrap_or("TCP") == "TCP";
    ports.filter(is_tcp).map(|port| port.container_port).collect()
}

fn with_ports(address: &str, ports: &[i32]) -> String {
    match ports {
        [] => address.to_owned(),
        [port] if address.contains(':') => format!("[{address}]:{port}"),
        [port] => format!("{address}:{port}"),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("{address}, ports {}", several.join(", "))
        }
    }
}

fn restarts(pod: &PodReport) -> i32 {
    let status = pod.pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_ref());
    let regular = status.and_then(|status| status.container_statuses.as_ref());
    init.into_iter().chain(regular).flatten().map(|container| container.restart_count).sum()
}

/// How long an operation has taken, once that is more than a moment.
fn span(since: Timestamp, now: Timestamp) -> String {
    match now.duration_since(since).as_secs() {
        ..1 => String::new(),
        seconds => format!(" for {seconds} s"),
    }
}

/// The pod's name, without the default namespace.
pub(super) fn short_name(pod: &PodReport) -> String {
    let name = pod.pod.full_name();
    if name.namespace == "default" {
        name.name
    } else {
        format!("{}/{}", name.namespace, name.name)
    }
}
