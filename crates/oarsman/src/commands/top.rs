//! `oarsman top`: the CPU time and memory that pods, or the node, use now.

use anyhow::Result;
use clap::{Args, ValueEnum};
use oarsman_core::stats::{
    ContainerSummary, CpuSummary, MemorySummary, NodeSummary, PodStatsSummary,
};

use super::AgentSelector;
use super::output::{OutputFormat, formatted, print};
use super::table::{TableCell, table};
use crate::threads;

#[cfg(test)]
mod tests;

const UNKNOWN: &str = "<unknown>";

/// What is measured.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman top                     CPU time and memory of every container
  oarsman top node                of the whole machine
  oarsman top -n kube-system      of the pods of one namespace
  oarsman top -o json | jq .[].memory.workingSetBytes

CPU is in thousandths of a core, over the time since the last request, or over a tenth of a second.
Memory is the working set: what the kernel cannot simply take away.")]
pub(crate) struct Flags {
    /// What is shown.
    #[arg(value_name = "WHAT", default_value = "pods")]
    subject: TopSubject,
    /// How it is shown, if not as a table.
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
    /// Only pods of this namespace.
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    agent: AgentSelector,
}

/// What may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TopSubject {
    Pods,
    Node,
}

/// Measures and shows.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::block_on(async {
        let (client, _) = flags.agent.fetch_report().await?;
        let summary = client.stats().await?;
        let wanted = |pod: &PodStatsSummary| {
            flags.namespace.as_ref().is_none_or(|namespace| pod.pod_ref.namespace == *namespace)
        };
        let pods: Vec<PodStatsSummary> = summary.pods.into_iter().filter(wanted).collect();
        print(&match (flags.subject, flags.output) {
            (TopSubject::Pods, None) => pod_table(&pods),
            (TopSubject::Pods, Some(format)) => formatted(&pods, format)?,
            (TopSubject::Node, None) => node_table(&summary.node),
            (TopSubject::Node, Some(format)) => formatted(&summary.node, format)?,
        })
    })
}

fn pod_table(pods: &[PodStatsSummary]) -> String {
    if pods.is_empty() {
        return "No pods are here.\n".to_owned();
    }
    let has_namespaces = pods.iter().any(|pod| pod.pod_ref.namespace != "default");
    let mut heading = vec!["POD", "CONTAINER", "CPU(cores)", "MEMORY(bytes)"];
    if has_namespaces {
        heading.insert(0, "NAMESPACE");
    }
    let row = |pod: &PodStatsSummary, container: &ContainerSummary| -> Vec<TableCell> {
        let namespace = has_namespaces.then(|| pod.pod_ref.namespace.clone().into());
        let cells = [
            pod.pod_ref.name.clone().into(),
            container.name.clone().into(),
            cpu(container.cpu.as_ref()).into(),
            memory(container.memory.as_ref()).into(),
        ];
        namespace.into_iter().chain(cells).collect()
    };
    let containers = pods.iter().flat_map(|pod| pod.containers.iter().map(move |it| (pod, it)));
    table(&heading, containers.map(|(pod, container)| row(pod, container)).collect())
}

fn node_table(node: &NodeSummary) -> String {
    let heading = ["NODE", "CPU(cores)", "MEMORY(bytes)", "MEMORY(%)"];
    let share = node.memory.as_ref().and_then(|memory| {
        let (used, free) = (memory.working_set_bytes?, memory.available_bytes?);
        Some(format!("{}%", used.saturating_mul(100) / used.saturating_add(free).max(1)))
    });
    let row = vec![
        node.node_name.clone().into(),
        cpu(node.cpu.as_ref()).into(),
        memory(node.memory.as_ref()).into(),
        share.unwrap_or_else(|| UNKNOWN.to_owned()).into(),
    ];
    table(&heading, vec![row])
}

/// Thousandths of a core; what is less than one is one, unless it is nothing.
fn cpu(cpu: Option<&CpuSummary>) -> String {
    let nano_cores = cpu.and_then(|cpu| cpu.usage_nano_cores);
    nano_cores.map_or_else(|| UNKNOWN.to_owned(), |it| format!("{}m", it.div_ceil(1_000_000)))
}

fn memory(memory: Option<&MemorySummary>) -> String {
    let bytes = memory.and_then(|memory| memory.working_set_bytes);
    bytes.map_or_else(|| UNKNOWN.to_owned(), |bytes| format!("{}Mi", bytes.div_ceil(1 << 20)))
}
