//! Agents that are killed while plugins work, and plugins that do not do their part at first.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_clock::SystemClock;
use oarsman_cri::Runtime;
use oarsman_host::processes;
use oarsman_runtime::{
    CniSettings, EmbeddedRuntime, EmbeddedRuntimeSettings, PodNetworkChoice, PodNetworkMode,
};
use tokio::time::{sleep, timeout};

use super::choice::until_clean;
use super::namespace;
use super::network::{PluginNetwork, pod_config, run_pod};
use crate::harness::{CGROUP, Node, cgroup};

/// The program's first argument that makes it such an agent.
pub(crate) const AGENT: &str = "agent-with-plugins";
const LONG: Duration = Duration::from_secs(60);

/// Runs a pod. The arguments are those after [`AGENT`]: the directory, the configuration and the plugins, separated by colons.
pub(crate) fn run_agent(arguments: &[String]) -> ExitCode {
    let [root, configuration, plugins] = arguments else { return ExitCode::from(2) };
    let cni = CniSettings {
        configuration: configuration.into(),
        plugins: plugins.split(':').map(Into::into).collect(),
        ..CniSettings::default()
    };
    let pod_networks = PodNetworkChoice { mode: PodNetworkMode::Cni, cni, collects_garbage: true };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let done = tokio.block_on(async {
        let settings = EmbeddedRuntimeSettings {
            pod_networks,
            ..EmbeddedRuntimeSettings::new(root, std::env::current_exe()?)
        };
        let runtime = EmbeddedRuntime::open(settings, Arc::new(SystemClock::start())).await?;
        run_pod(&runtime, pod_config("one")).await?;
        anyhow::Ok(())
    });
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Waits until a file is there, and gives its content.
async fn until_written(path: &Path) -> Result<String> {
    let written = async {
        while !path.exists() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, written).await?;
    Ok(fs::read_to_string(path)?)
}

pub(super) async fn killed_in_add(node: Node, name: &'static str) -> Result<()> {
    let network = PluginNetwork::new(&node, name, 75)?;
    // After bridge and address are there, and before all is done. What it would do then must not happen.
    let hang = "if [ $CNI_COMMAND = ADD ]; then\n\
         echo \"$$ $CNI_CONTAINERID\" > $HERE/plugin.new; mv $HERE/plugin.new $HERE/plugin\n\
         setsid sleep 600 &\n sleep 600\n touch $HERE/went-on\nfi";
    network.install("hanging", hang)?;
    network.configure_with(&["hanging"])?;
    let choice = network.choice(PodNetworkMode::Cni);
    let plugins: Vec<String> =
        choice.cni.plugins.iter().map(|path| path.display().to_string()).collect();
    let mut agent = Command::new(std::env::current_exe()?)
        .arg(AGENT)
        .args([&node.path().join(name), &choice.cni.configuration])
        .arg(plugins.join(":"))
        .env(CGROUP, cgroup())
        .stdin(Stdio::null())
        .spawn()?;
    let started = until_written(&network.file("plugin")).await;
    agent.kill()?;
    agent.wait()?;
    let started = started?;
    let (plugin, pod) = started.trim().split_once(' ').unwrap();
    let plugin: u32 = plugin.parse()?;
    ensure!(processes::find(plugin).is_some(), "the plugin has outlived its agent");
    ensure!(network.leases()?.len() == 2, "{:?}", network.leases()?);
    let runtime = node.open_with(name, choice).await?;
    // Ended before anything was done with the pod.
    ensure!(processes::kill_by_variable("CNI_CONTAINERID", pod)? == 0);
    ensure!(processes::find(plugin).is_none_or(|process| process.state == 'Z'));
    ensure!(runtime.list_pod_sandboxes(None).await?.is_empty());
    until_clean(&network).await?;
    let place = namespace(&node, name, pod);
    let unpinned = async {
        while place.exists() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, unpinned).await?;
    ensure!(!network.file("went-on").exists());
    let kept = node.path().join(name).join("cni");
    ensure!(fs::read_dir(kept)?.next().is_none());
    // Its name is free, and its address.
    network.configure()?;
    let again = run_pod(&runtime, pod_config("one")).await?;
    runtime.remove_pod_sandbox(&again).await?;
    node.close_later(runtime);
    Ok(())
}

pub(super) async fn failing_del(node: Node, name: &'static str) -> Result<()> {
    let network = PluginNetwork::new(&node, name, 76)?;
    let fails = "case $CNI_COMMAND in\n\
         ADD) echo \"$input\" | sed 's/.*\"prevResult\":\\({.*}\\),\"type\".*/\\1/';;\n\
         DEL) [ -e $HERE/works ] || { echo '{\"code\":100,\"msg\":\"not yet\"}'; exit 1; };;\nesac";
    network.install("failing", fails)?;
    network.configure_with(&["failing"])?;
    let choice = network.choice(PodNetworkMode::Cni);
    let runtime = node.open_with(name, choice.clone()).await?;
    let pod = run_pod(&runtime, pod_config("one")).await?;
    // The kubelet is told, and tries again.
    let refused = runtime.stop_pod_sandbox(&pod).await.unwrap_err().to_string();
    let wanted = "failed to destroy network for sandbox ";
    ensure!(refused.contains(wanted) && refused.contains("not yet (code 100)"), "{refused}");
    ensure!(network.leases()?.len() == 2, "the address stays taken");
    drop(runtime);
    let runtime = node.open_with(name, choice).await?;
    ensure!(runtime.remove_pod_sandbox(&pod).await.is_err());
    fs::write(network.file("works"), "")?;
    runtime.remove_pod_sandbox(&pod).await?;
    ensure!(network.traces()?.is_empty(), "{:?}", network.traces()?);
    node.close_later(runtime);
    Ok(())
}
