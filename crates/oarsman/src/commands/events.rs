//! `oarsman events`: the recent events of pods.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use oarsman_core::report::{EventReport, NodeReport};
use serde_json::{Value, json};

use super::output::{OutputFormat, formatted, print};
use super::table::{TableCell, table};
use super::{AgentSelector, age, find_pod};
use crate::threads;

#[cfg(test)]
mod tests;

/// Whose events, and how they are shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman events                  what happened to all pods, oldest first
  oarsman events web              what happened to one pod
  oarsman events -o json | jq .items[].reason")]
pub(crate) struct Flags {
    /// Only of this pod: NAME, NAMESPACE/NAME or how it begins.
    pod: Option<String>,
    /// How they are shown, if not as a table.
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
    #[command(flatten)]
    agent: AgentSelector,
}

/// Shows events.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::block_on(async {
        let (_, node) = flags.agent.fetch_report().await?;
        let events = match &flags.pod {
            Some(name) => of_pod(&node, name)?,
            None => node.events.iter().collect(),
        };
        print(&match flags.output {
            Some(format) => formatted(&list(&events), format)?,
            None if events.is_empty() => "No events are known.\n".to_owned(),
            None => rows(&events, node.now, true),
        })
    })
}

/// The events of a pod, also of one that is gone.
fn of_pod<'a>(
    node: &'a NodeReport,
    name: &str,
) -> Result<Vec<&'a EventReport>, find_pod::PodNotFound> {
    let of = |namespace: Option<&str>, name: &str| -> Vec<&'a EventReport> {
        let all = node.events.iter();
        all.filter(|event| event.pod == name && namespace.is_none_or(|it| it == event.namespace))
            .collect()
    };
    match find_pod::find(node, name) {
        Ok(pod) => Ok(of(
            pod.pod.metadata.namespace.as_deref(),
            pod.pod.metadata.name.as_deref().unwrap_or_default(),
        )),
        Err(not_found) => {
            let (namespace, bare) =
                name.split_once('/').map_or((None, name), |(n, p)| (Some(n), p));
            let left =
                [of(namespace, bare), of(namespace, &format!("{bare}-{}", node.node))].concat();
            if left.is_empty() { Err(not_found) } else { Ok(left) }
        }
    }
}

/// One line each; the pod's name is left out where the command names the pod.
pub(super) fn rows(events: &[&EventReport], now: Timestamp, shows_pod: bool) -> String {
    let row = |event: &&EventReport| -> Vec<TableCell> {
        let warning = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
        let kind =
            if event.is_warning { TableCell::styled("Warning", warning) } else { "Normal".into() };
        let object = if shows_pod {
            pod_of_event(event)
        } else {
            container(event).unwrap_or("pod").to_owned()
        };
        let message = event.message.replace('\n', " ");
        vec![
            when(event, now).into(),
            kind,
            event.reason.clone().into(),
            object.into(),
            message.into(),
        ]
    };
    let heading = ["LAST", "TYPE", "REASON", if shows_pod { "OBJECT" } else { "ABOUT" }, "MESSAGE"];
    table(&heading, events.iter().map(row).collect())
}

/// The time of the event, and how often it happened in which period.
fn when(event: &EventReport, now: Timestamp) -> String {
    let last = age::between(event.last, now);
    match event.count {
        0 | 1 => last,
        count => format!("{last} (x{count} over {})", age::between(event.first, now)),
    }
}

fn pod_of_event(event: &EventReport) -> String {
    let namespace = match event.namespace.as_str() {
        "default" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let container = container(event).map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{namespace}{}{container}", event.pod)
}

/// The container that an event is about: `spec.containers{web}` is about web.
fn container(event: &EventReport) -> Option<&str> {
    event.field_path.as_deref()?.split_once('{')?.1.strip_suffix('}')
}

/// The events as `kubectl get events -o json` prints them.
fn list(events: &[&EventReport]) -> Value {
    let item = |event: &&EventReport| {
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "namespace": event.namespace },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": event.namespace,
                "name": event.pod,
                "uid": event.uid,
                "fieldPath": event.field_path,
            },
            "type": if event.is_warning { "Warning" } else { "Normal" },
            "reason": event.reason,
            "message": event.message,
            "count": event.count,
            "firstTimestamp": event.first,
            "lastTimestamp": event.last,
            "source": { "component": "oarsman" },
        })
    };
    let items: Vec<Value> = events.iter().map(item).collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}
