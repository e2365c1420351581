//! Pods that real CNI plugins connect: traffic, host ports, limits, restarts, changed configurations, and agents that are killed half-way.

mod choice;
mod interruptions;
mod network;
mod traffic;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use oarsman_contract::Harness;
use oarsman_runtime::PodNetworkMode;
use tokio::runtime::Handle;

use crate::harness::Node;
use crate::reconnect::trial;
pub(crate) use interruptions::{AGENT, run_agent};
use network::{BRIDGES, PluginNetwork};

const FAMILY: &str = "cni";

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Vec<Trial> {
    vec![
        trial(
            node,
            tokio,
            FAMILY,
            "pods_reach_each_other_and_have_host_ports_and_limits_by_plugins",
            traffic::all_of_a_pod,
        ),
        trial(
            node,
            tokio,
            FAMILY,
            "annotations_limit_pods_on_the_bridge_and_wrong_ones_are_refused",
            traffic::limits_on_the_bridge,
        ),
        trial(
            node,
            tokio,
            FAMILY,
            "what_connected_a_pod_disconnects_it_whatever_is_configured_later",
            choice::by_the_same,
        ),
        trial(
            node,
            tokio,
            FAMILY,
            "without_a_usable_configuration_there_is_a_reason_and_no_pod",
            choice::not_ready,
        ),
        trial(
            node,
            tokio,
            FAMILY,
            "garbage_is_collected_at_the_start_and_broken_pods_are_told",
            choice::start,
        ),
        trial(
            node,
            tokio,
            FAMILY,
            "an_agent_killed_while_plugins_connect_a_pod_leaves_nothing",
            interruptions::killed_in_add,
        ),
        trial(
            node,
            tokio,
            FAMILY,
            "a_pod_that_could_not_be_disconnected_is_disconnected_later",
            interruptions::failing_del,
        ),
    ]
}

/// A runtime whose pods are connected by plugins, for cases of the contract.
pub(crate) async fn contract(node: &Node) -> Result<Arc<dyn Harness>> {
    let network = PluginNetwork::new(node, "cni-contract", 70)?;
    network.configure()?;
    node.contract_with("cni-contract", network.choice(PodNetworkMode::Cni)).await
}

/// What a network has to do with: sandboxes.
pub(crate) fn contract_trials(harness: &Arc<dyn Harness>, tokio: &Handle) -> Vec<Trial> {
    let mut trials = oarsman_contract::trials("embedded-cni", harness, tokio);
    trials.retain(|trial| trial.name().contains("sandbox"));
    trials
}

/// Plugins leave their bridges to whom has configured them.
pub(crate) fn remove_bridges() -> Result<()> {
    for line in std::fs::read_to_string("/proc/self/net/dev")?.lines() {
        let name = line.split(':').next().unwrap_or_default().trim();
        if name.starts_with(BRIDGES) {
            run(&["ip", "link", "delete", name])?;
        }
    }
    Ok(())
}

/// Runs a command in the namespaces of this test, and gives its output.
fn run(words: &[&str]) -> Result<String> {
    let (program, arguments) = words.split_first().unwrap();
    let done = Command::new(program).args(arguments).output()?;
    ensure!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The file of a pod's network namespace.
fn namespace(node: &Node, name: &str, pod: &str) -> PathBuf {
    node.path().join(name).join("network/namespaces").join(pod).join("net")
}
