//! `oarsman describe`: everything about one pod, as `kubectl describe pod` lays it out.

mod containers;
mod field_writer;
mod volumes;

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use k8s_openapi::api::core::v1::{PodSpec, PodStatus};
use oarsman_core::pod::PodExt;
use oarsman_core::report::{Activity, EventReport, NodeReport, PodReport, StageReport};

use super::output::print;
use super::table::table;
use super::{AgentSelector, age, events, find_pod, pod_summary};
use crate::threads;

use field_writer::FieldWriter;

#[cfg(test)]
mod tests;

/// Which pod.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman describe web            spec, states, conditions, volumes and events
  oarsman describe kube-system/etcd --root-dir /var/lib/kubelet")]
pub(crate) struct Flags {
    /// The pod: NAME, NAMESPACE/NAME or how it begins.
    pod: String,
    #[command(flatten)]
    agent: AgentSelector,
}

/// Describes a pod.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::block_on(async {
        let (_, node) = flags.agent.fetch_report().await?;
        let pod = find_pod::find(&node, &flags.pod)?;
        print(&render(&node, pod))
    })
}

fn render(node: &NodeReport, pod: &PodReport) -> String {
    let spec = pod.pod.spec.clone().unwrap_or_default();
    let status = pod.pod.status.clone().unwrap_or_default();
    let mut writer = FieldWriter::default();
    write_header(&mut writer, node, pod, &spec, &status);
    containers::list(&mut writer, &spec, &status);
    conditions(&mut writer, &status);
    volumes::list(&mut writer, &spec);
    writer.field("QoS Class", status.qos_class.as_deref().unwrap_or_default());
    writer.map("Node-Selectors", &spec.node_selector.unwrap_or_default(), "=");
    format!("{}{}", writer.text(), recent_events(node, pod))
}

fn write_header(
    writer: &mut FieldWriter,
    node: &NodeReport,
    pod: &PodReport,
    spec: &PodSpec,
    status: &PodStatus,
) {
    let name = pod.pod.full_name();
    writer.field("Name", &name.name);
    writer.field("Namespace", &name.namespace);
    writer.field("UID", pod.pod.uid().as_str());
    writer.field("Manifest", pod.place.as_deref().unwrap_or("<none>"));
    writer.number("Priority", spec.priority);
    writer.field("Priority Class Name", spec.priority_class_name.as_deref().unwrap_or_default());
    writer
        .field("Node", &format!("{}/{}", node.node, status.host_ip.as_deref().unwrap_or_default()));
    writer.time("Start Time", status.start_time.as_ref());
    writer.map("Labels", &pod.pod.metadata.labels.clone().unwrap_or_default(), "=");
    writer.map("Annotations", &pod.pod.metadata.annotations.clone().unwrap_or_default(), ": ");
    writer.field("Status", &pod_summary::summary(pod).status);
    writer.field("Phase", status.phase.as_deref().unwrap_or("Pending"));
    writer.field("Reason", status.reason.as_deref().unwrap_or_default());
    writer.field("Message", status.message.as_deref().unwrap_or_default());
    writer.field("Now", &now(node, pod));
    let grace = spec.termination_grace_period_seconds;
    writer.field("Grace Period", &grace.map(|it| format!("{it}s")).unwrap_or_default());
    writer.field("Host Network", if spec.host_network == Some(true) { "true" } else { "" });
    let ips: Vec<&str> = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str()).collect();
    writer.field("IP", status.pod_ip.as_deref().unwrap_or("<none>"));
    writer.field("IPs", &ips.join(", "));
}

/// The operation under way on the pod, or when the next one is due.
fn now(node: &NodeReport, pod: &PodReport) -> String {
    let since = |doing: &oarsman_core::report::PodActivity| age::between(doing.since, node.now);
    let busy = pod.doing.as_ref().map(|doing| {
        let of = doing.container.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("{}{of}, for {}", activity(&doing.what), since(doing))
    });
    let again = pod.next_try.map(|at| format!("the next try is in {}", age::between(node.now, at)));
    let waits = (pod.stage == StageReport::Waiting)
        .then(|| "waits until the pod of its name before it is gone".to_owned());
    busy.or(waits).or(again).unwrap_or_default()
}

fn activity(what: &Activity) -> String {
    match what {
        Activity::Looking => "asking the runtime what there is of it".to_owned(),
        Activity::Preparing => "making its directories, volumes and cgroup".to_owned(),
        Activity::MakingSandbox => "making its sandbox and network".to_owned(),
        Activity::WaitingToPull(image) => {
            format!("waiting to pull {image}: other pulls come first")
        }
        Activity::Pulling(image) => format!("pulling {image}"),
        Activity::Starting => "starting".to_owned(),
        Activity::PostStart => "running its postStart hook".to_owned(),
        Activity::PreStop => "running its preStop hook".to_owned(),
        Activity::Stopping(grace) => format!("stopping, with {grace}s to do so"),
        Activity::GivingBack => "giving back what it held".to_owned(),
    }
}

fn conditions(writer: &mut FieldWriter, status: &PodStatus) {
    let conditions = status.conditions.clone().unwrap_or_default();
    if conditions.is_empty() {
        return;
    }
    let row = |it: &k8s_openapi::api::core::v1::PodCondition| {
        let why = [it.reason.clone(), it.message.clone()].into_iter().flatten();
        let why = why.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
        vec![it.type_.clone().into(), it.status.clone().into(), why.into()]
    };
    let rows = conditions.iter().map(row).collect();
    writer.block("Conditions", &table(&["Type", "Status", "Why"], rows));
}

fn recent_events(node: &NodeReport, pod: &PodReport) -> String {
    let uid = pod.pod.uid();
    let own: Vec<&EventReport> =
        node.events.iter().filter(|event| event.uid == uid.as_str()).collect();
    if own.is_empty() {
        return "Events:  <none>\n".to_owned();
    }
    let mut writer = FieldWriter::default();
    writer.block("Events", &events::rows(&own, node.now, false));
    writer.text()
}

/// Quantities by name, one to a line.
fn quantities(
    of: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
) -> BTreeMap<String, String> {
    of.into_iter().flatten().map(|(name, it)| (name.clone(), it.0.clone())).collect()
}
