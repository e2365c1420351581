//! `oarsman describe`: everything about one pod, as `kubectl describe pod` lays it out.

mod containers;
mod page;
mod volumes;

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use k8s_openapi::api::core::v1::{PodSpec, PodStatus};
use oarsman_core::pod::PodExt;
use oarsman_core::report::{Activity, EventReport, NodeReport, PodReport, StageReport};

use super::output::say;
use super::table::table;
use super::{Whom, age, events, status, which};
use crate::threads;

use page::Page;

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
    whom: Whom,
}

/// Describes a pod.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::work_on(async {
        let (_, node) = flags.whom.ask().await?;
        let pod = which::pod(&node, &flags.pod)?;
        say(&render(&node, pod))
    })
}

fn render(node: &NodeReport, pod: &PodReport) -> String {
    let spec = pod.pod.spec.clone().unwrap_or_default();
    let status = pod.pod.status.clone().unwrap_or_default();
    let mut page = Page::default();
    head(&mut page, node, pod, &spec, &status);
    containers::list(&mut page, &spec, &status);
    conditions(&mut page, &status);
    volumes::list(&mut page, &spec);
    page.field("QoS Class", status.qos_class.as_deref().unwrap_or_default());
    page.map("Node-Selectors", &spec.node_selector.unwrap_or_default(), "=");
    format!("{}{}", page.text(), happened(node, pod))
}

fn head(page: &mut Page, node: &NodeReport, pod: &PodReport, spec: &PodSpec, status: &PodStatus) {
    let name = pod.pod.full_name();
    page.field("Name", &name.name);
    page.field("Namespace", &name.namespace);
    page.field("UID", pod.pod.uid().as_str());
    page.field("Manifest", pod.place.as_deref().unwrap_or("<none>"));
    page.number("Priority", spec.priority);
    page.field("Priority Class Name", spec.priority_class_name.as_deref().unwrap_or_default());
    page.field("Node", &format!("{}/{}", node.node, status.host_ip.as_deref().unwrap_or_default()));
    page.time("Start Time", status.start_time.as_ref());
    page.map("Labels", &pod.pod.metadata.labels.clone().unwrap_or_default(), "=");
    page.map("Annotations", &pod.pod.metadata.annotations.clone().unwrap_or_default(), ": ");
    page.field("Status", &status::summary(pod).word);
    page.field("Phase", status.phase.as_deref().unwrap_or("Pending"));
    page.field("Reason", status.reason.as_deref().unwrap_or_default());
    page.field("Message", status.message.as_deref().unwrap_or_default());
    page.field("Now", &now(node, pod));
    let grace = spec.termination_grace_period_seconds;
    page.field("Grace Period", &grace.map(|it| format!("{it}s")).unwrap_or_default());
    page.field("Host Network", if spec.host_network == Some(true) { "true" } else { "" });
    let ips: Vec<&str> = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str()).collect();
    page.field("IP", status.pod_ip.as_deref().unwrap_or("<none>"));
    page.field("IPs", &ips.join(", "));
}

/// What is being done to the pod, or when something will be.
fn now(node: &NodeReport, pod: &PodReport) -> String {
    let since = |doing: &oarsman_core::report::Doing| age::between(doing.since, node.now);
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

fn conditions(page: &mut Page, status: &PodStatus) {
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
    page.block("Conditions", &table(&["Type", "Status", "Why"], rows));
}

fn happened(node: &NodeReport, pod: &PodReport) -> String {
    let uid = pod.pod.uid();
    let own: Vec<&EventReport> =
        node.events.iter().filter(|event| event.uid == uid.as_str()).collect();
    if own.is_empty() {
        return "Events:  <none>\n".to_owned();
    }
    let mut page = Page::default();
    page.block("Events", &events::rows(&own, node.now, false));
    page.text()
}

/// Quantities by name, one to a line.
fn quantities(
    of: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
) -> BTreeMap<String, String> {
    of.into_iter().flatten().map(|(name, it)| (name.clone(), it.0.clone())).collect()
}
