//! `oarsman stop`: stops pods, and returns when they are gone.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{Activity, NodeReport, PodReport};
use tokio::time::{Instant, sleep};

use super::output::{print, print_stderr};
use super::{AgentSelector, age, find_pod};
use crate::local_api::{ClientError, LocalClient, PodName, StopRequest};
use crate::lock::holder_of_root;
use crate::threads;

#[cfg(test)]
mod tests;

/// How often the agent is asked whether the pods are gone.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often the command prints what it waits for.
const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// How long a pod may take to stop beyond its grace period.
const ALLOWANCE: Duration = Duration::from_secs(60);
/// How long an agent may take to end once its pods are gone.
const ENDING: Duration = Duration::from_secs(15);
/// The default grace period of a pod, in seconds.
const USUAL_GRACE: i64 = 30;

/// Which pods.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman stop web                take one pod of `oarsman run` down, and keep it down
  oarsman stop web db             two of them
  oarsman stop --all              all of them, and end the agent")]
pub(crate) struct Flags {
    /// The pods: NAME, NAMESPACE/NAME or how it begins.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pods: Vec<String>,
    /// All pods, and the agent with them.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    agent: AgentSelector,
}

/// Stops pods.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::block_on(async {
        let (client, node) = flags.agent.fetch_report().await?;
        let pods: Vec<&PodReport> = match flags.all {
            true => node.pods.iter().collect(),
            false => flags
                .pods
                .iter()
                .map(|name| find_pod::find(&node, name))
                .collect::<Result<_, _>>()?,
        };
        let named = if flags.all { Vec::new() } else { pods.iter().map(|pod| name(pod)).collect() };
        client.stop(&StopRequest { pods: named, all: flags.all }).await?;
        let names: BTreeSet<String> = pods.iter().map(|pod| find_pod::display_name(pod)).collect();
        let mut wait = StopWait::new(stop_timeout(&pods));
        wait_until_gone(&client, &names, &mut wait).await?;
        if flags.all {
            wait_until_agent_ended(&node, &mut wait).await?;
        }
        print(&format!("{}\n", stopped_message(&names, flags.all)))
    })
}

fn name(pod: &PodReport) -> PodName {
    let name = pod.pod.full_name();
    PodName { namespace: name.namespace, name: name.name }
}

/// How long the pods may take to stop, by the longest of their grace periods.
fn stop_timeout(pods: &[&PodReport]) -> Duration {
    let grace = |pod: &&PodReport| {
        let asked = pod.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        asked.unwrap_or(USUAL_GRACE)
    };
    let longest = pods.iter().map(grace).max().unwrap_or_default();
    Duration::from_secs(longest.max(0).unsigned_abs()) + ALLOWANCE
}

fn stopped_message(names: &BTreeSet<String>, all: bool) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match (all, names.as_slice()) {
        (true, []) => "The agent has ended.".to_owned(),
        (true, names) => format!("Stopped {}; the agent has ended.", names.join(", ")),
        (false, names) => format!("Stopped {}.", names.join(", ")),
    }
}

/// A wait with a deadline, which prints now and then what it waits for.
struct StopWait {
    end: Instant,
    say: Instant,
}

impl StopWait {
    fn new(max_wait: Duration) -> Self {
        Self { end: Instant::now() + max_wait, say: Instant::now() + LOG_INTERVAL }
    }

    async fn pause(&mut self, for_what: impl FnOnce() -> String) -> Result<()> {
        let now = Instant::now();
        if now >= self.end {
            bail!("gave up waiting for {}", for_what());
        }
        if now >= self.say {
            self.say = now + LOG_INTERVAL;
            print_stderr(&format!("waiting for {}", for_what()))?;
        }
        sleep(POLL_INTERVAL).await;
        Ok(())
    }
}

async fn wait_until_gone(
    client: &LocalClient,
    names: &BTreeSet<String>,
    wait: &mut StopWait,
) -> Result<()> {
    loop {
        let node = match client.report().await {
            Ok(node) => node,
            // An agent that has ended has stopped its pods before.
            Err(ClientError::NotRunning(_)) => return Ok(()),
            // One that ends cuts the connection that asks it.
            Err(ClientError::Other(..)) => {
                wait.pause(|| "the agent to answer".to_owned()).await?;
                continue;
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let left: Vec<&PodReport> =
            node.pods.iter().filter(|pod| names.contains(&find_pod::display_name(pod))).collect();
        if left.is_empty() {
            return Ok(());
        }
        wait.pause(|| remaining_pods(&node, &left)).await?;
    }
}

fn remaining_pods(node: &NodeReport, left: &[&PodReport]) -> String {
    let pods =
        left.iter().map(|pod| format!("{}{}", find_pod::display_name(pod), doing(node, pod)));
    pods.collect::<Vec<_>>().join(", ")
}

fn doing(node: &NodeReport, pod: &PodReport) -> String {
    let Some(doing) = &pod.doing else { return String::new() };
    let since = age::between(doing.since, node.now);
    let container = doing.container.as_deref().unwrap_or("the pod");
    match &doing.what {
        Activity::Stopping(grace) => {
            format!(" ({container} was asked to end {since} ago and has {grace}s for it)")
        }
        Activity::PreStop => format!(" (the preStop hook of {container} has run for {since})"),
        Activity::GivingBack => format!(" (giving back what it held, for {since})"),
        _ => String::new(),
    }
}

/// Waits until the agent has released the lock of its root directory. Its pid would not tell: it may be in another pid namespace.
async fn wait_until_agent_ended(node: &NodeReport, wait: &mut StopWait) -> Result<()> {
    wait.end = wait.end.max(Instant::now() + ENDING);
    while holder_of_root(Path::new(&node.root)).is_some() {
        wait.pause(|| format!("the agent (process {}) to end", node.pid)).await?;
    }
    Ok(())
}
