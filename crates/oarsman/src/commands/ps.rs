//! `oarsman ps`: all pods, a line each.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use k8s_openapi::List;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{NodeReport, PodReport};
use tokio::time::sleep;

use super::output::{OutputFormat, formatted, print};
use super::pod_summary::{PodSummary, summary};
use super::table::{TableCell, table};
use super::{AgentSelector, age};
use crate::local_api::LocalClient;
use crate::threads;

#[cfg(test)]
mod tests;

/// How often `--watch` asks the agent.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How pods are shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman ps                      every pod of this node's agent
  oarsman ps -o wide              with addresses, manifests and images
  oarsman ps -w                   again whenever something has changed
  oarsman ps -o json | jq .items[].status.phase")]
pub(crate) struct Flags {
    /// How they are shown, if not as a table.
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<PodListFormat>,
    /// Only pods of this namespace.
    #[arg(long, short)]
    namespace: Option<String>,
    /// Go on, and show them again whenever something has changed.
    #[arg(long, short, conflicts_with = "output")]
    watch: bool,
    #[command(flatten)]
    agent: AgentSelector,
}

/// How pods may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PodListFormat {
    Wide,
    Json,
    Yaml,
}

/// Shows pods.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::block_on(async {
        let (client, node) = flags.agent.fetch_report().await?;
        let shown = render(&node, flags)?;
        print(&shown)?;
        if flags.watch { watch(&client, flags, shown).await } else { Ok(()) }
    })
}

/// Prints the pods again whenever something has changed, until interrupted.
async fn watch(client: &LocalClient, flags: &Flags, mut shown: String) -> Result<()> {
    loop {
        sleep(POLL_INTERVAL).await;
        let now = render(&client.report().await?, flags)?;
        if now != shown {
            print(&format!("\n{now}"))?;
            shown = now;
        }
    }
}

fn render(node: &NodeReport, flags: &Flags) -> Result<String> {
    let wanted = |pod: &&PodReport| {
        flags.namespace.as_ref().is_none_or(|namespace| pod.pod.full_name().namespace == *namespace)
    };
    let pods: Vec<&PodReport> = node.pods.iter().filter(wanted).collect();
    match flags.output {
        None => Ok(as_table(node, &pods, false)),
        Some(PodListFormat::Wide) => Ok(as_table(node, &pods, true)),
        Some(PodListFormat::Json) => list(&pods, OutputFormat::Json),
        Some(PodListFormat::Yaml) => list(&pods, OutputFormat::Yaml),
    }
}

/// A PodList, as tools that know the API parse it.
fn list(pods: &[&PodReport], format: OutputFormat) -> Result<String> {
    let items = pods.iter().map(|pod| pod.pod.clone()).collect();
    formatted(&List::<Pod> { items, ..List::default() }, format)
}

fn as_table(node: &NodeReport, pods: &[&PodReport], wide: bool) -> String {
    let troubles = node_problems(node);
    if pods.is_empty() {
        return format!("No pods are here.\n{troubles}");
    }
    let elsewhere = pods.iter().any(|pod| pod.pod.full_name().namespace != "default");
    let mut heading = vec!["NAME", "READY", "STATUS", "RESTARTS", "AGE"];
    if elsewhere {
        heading.insert(0, "NAMESPACE");
    }
    if wide {
        heading.extend(["IP", "NODE", "UID", "MANIFEST", "IMAGES"]);
    }
    let row = |pod: &&PodReport| {
        let name = pod.pod.full_name();
        let namespace = elsewhere.then(|| TableCell::from(name.namespace.clone()));
        let rest = if wide { wide_columns(node, pod) } else { Vec::new() };
        namespace.into_iter().chain(short(node, pod)).chain(rest).collect()
    };
    format!("{}{troubles}", table(&heading, pods.iter().map(row).collect()))
}

fn short(node: &NodeReport, pod: &PodReport) -> Vec<TableCell> {
    let summary = summary(pod);
    vec![
        pod.pod.full_name().name.into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        TableCell::styled(summary.status.clone(), colour(&summary)),
        restarts(&summary, node.now).into(),
        since(&pod.pod).map_or("<unknown>".to_owned(), |at| age::between(at, node.now)).into(),
    ]
}

/// Green for running, plain for completed, yellow for starting or ending, red for the rest.
fn colour(summary: &PodSummary) -> Style {
    let colour = match summary.status.as_str() {
        "Running" if summary.ready == summary.total => AnsiColor::Green,
        "Completed" | "Succeeded" => return Style::new(),
        "Running" | "Pending" | "ContainerCreating" | "PodInitializing" | "Terminating"
        | "NotReady" => AnsiColor::Yellow,
        word if word.starts_with("Init:") && word.contains('/') => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    };
    Style::new().fg_color(Some(colour.into()))
}

fn restarts(summary: &PodSummary, now: Timestamp) -> String {
    match summary.last_restart.filter(|_| summary.restarts > 0) {
        Some(at) => format!("{} ({} ago)", summary.restarts, age::between(at, now)),
        None => summary.restarts.to_string(),
    }
}

/// When the pod was created, or when the agent first saw it.
fn since(pod: &Pod) -> Option<Timestamp> {
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    pod.metadata.creation_timestamp.as_ref().or(started).map(|at| at.0)
}

fn wide_columns(node: &NodeReport, pod: &PodReport) -> Vec<TableCell> {
    let none = || "<none>".to_owned();
    let ip = pod.pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    let uid: String = pod.pod.uid().as_str().chars().take(8).collect();
    let images = pod.pod.all_containers().into_iter().filter_map(|it| it.spec.image.clone());
    vec![
        ip.unwrap_or_else(none).into(),
        node.node.clone().into(),
        uid.into(),
        pod.place.clone().unwrap_or_else(none).into(),
        images.collect::<Vec<_>>().join(",").into(),
    ]
}

/// Problems of the node besides those of its pods: the runtime, broken manifests.
fn node_problems(node: &NodeReport) -> String {
    let bad = Style::new().fg_color(Some(AnsiColor::Red.into()));
    let mut text = String::new();
    if let Some(trouble) = &node.runtime.trouble {
        let since = age::between(trouble.since, node.now);
        let (endpoint, why) = (&node.runtime.endpoint, &trouble.why);
        text += &format!(
            "\n{bad}The runtime at {endpoint} has not answered for {since}:{bad:#} {why}\n"
        );
    }
    for broken in &node.broken {
        let fate = if broken.goes_on { "its pod goes on as it was" } else { "no pod comes of it" };
        text += &format!("\n{bad}{}:{bad:#} {} ({fate})\n", broken.place, broken.why);
    }
    text
}
