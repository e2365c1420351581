//! What connects a pod, what disconnects it, and what there is when neither can be.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::NamespaceMode;
use oarsman_runtime::PodNetworkMode;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::network::{PluginNetwork, addresses, pod_config, run_pod, trouble};
use super::run;
use crate::harness::Node;

const LONG: Duration = Duration::from_secs(60);

pub(super) async fn by_the_same(node: Node, name: &'static str) -> Result<()> {
    let network = PluginNetwork::new(&node, name, 72)?;
    let mode = PodNetworkMode::CniIfConfigured;
    let runtime = node.open_with(name, network.choice(mode)).await?;
    ensure!(trouble(&runtime).await?.is_none());
    let bridged = run_pod(&runtime, pod_config("bridged")).await?;
    let is_plugged = |all: Vec<String>| all[0].starts_with("10.77.72.");
    ensure!(!is_plugged(addresses(&runtime, &bridged).await?));
    // A configuration that appears is used from the next pod on.
    network.configure()?;
    let plugged = run_pod(&runtime, pod_config("plugged")).await?;
    ensure!(is_plugged(addresses(&runtime, &plugged).await?));
    let other = run_pod(&runtime, pod_config("other")).await?;
    // One that is gone is no reason to connect pods elsewhere.
    network.remove_configuration()?;
    let told = trouble(&runtime).await?.unwrap_or_default();
    ensure!(told.starts_with("NetworkPluginNotReady: Network plugin returns error: cni plugin not initialized: the configuration in "), "{told}");
    let refused = run_pod(&runtime, pod_config("next")).await.unwrap_err().to_string();
    ensure!(refused.contains("cni plugin not initialized"), "{refused}");
    runtime.remove_pod_sandbox(&other).await?;
    drop(runtime);
    // Another agent, which uses the bridge only.
    let runtime = node.open_with(name, network.choice(PodNetworkMode::Bridge)).await?;
    ensure!(is_plugged(addresses(&runtime, &plugged).await?));
    ensure!(network.leases()?.len() == 2, "{:?}", network.leases()?);
    for pod in [bridged, plugged] {
        runtime.stop_pod_sandbox(&pod).await?;
        runtime.remove_pod_sandbox(&pod).await?;
    }
    ensure!(network.traces()?.is_empty(), "{:?}", network.traces()?);
    node.close_later(runtime);
    Ok(())
}

pub(super) async fn not_ready(node: Node, name: &'static str) -> Result<()> {
    let network = PluginNetwork::new(&node, name, 73)?;
    let runtime = node.open_with(name, network.choice(PodNetworkMode::Cni)).await?;
    let told = trouble(&runtime).await?.unwrap_or_default();
    ensure!(told.contains("no network is configured in "), "{told}");
    let refused = run_pod(&runtime, pod_config("one")).await.unwrap_err().to_string();
    ensure!(refused.contains("no network is configured in "), "{refused}");
    // On the node's network a pod needs none, such as the one that brings the configuration.
    let mut config = pod_config("on-the-node");
    let security = config.linux.as_mut().map(|linux| {
        linux.security_context.get_or_insert_default().namespace_options.get_or_insert_default()
    });
    security.unwrap().set_network(NamespaceMode::Node);
    let on_the_node = run_pod(&runtime, config).await?;
    runtime.remove_pod_sandbox(&on_the_node).await?;
    network.write(&json!({ "cniVersion": "1.0.0", "name": "x", "plugins": 7 }))?;
    let told = trouble(&runtime).await?.unwrap_or_default();
    ensure!(told.contains("10-test.conflist") && told.contains("plugins"), "{told}");
    network.configure_with(&["waiting"])?;
    network.install("waiting", "echo '{\"code\":50,\"msg\":\"daemon away\"}'; exit 1")?;
    let told = trouble(&runtime).await?.unwrap_or_default();
    ensure!(told.contains("plugin type=\"waiting\" failed (status): daemon away"), "{told}");
    let refused = run_pod(&runtime, pod_config("one")).await.unwrap_err().to_string();
    let wanted = "plugin type=\"waiting\" failed (add): daemon away (code 50: the plugin is not available), on network \"net-73\" of pod default/one";
    ensure!(refused.contains("failed to setup network for sandbox "), "{refused}");
    ensure!(refused.contains(wanted), "{refused}");
    ensure!(runtime.list_pod_sandboxes(None).await?.is_empty());
    // Its DEL fails, too; when it no longer does, the upkeep has it done.
    network.install("waiting", "[ $CNI_COMMAND != ADD ] || echo '{}'")?;
    until_clean(&network).await?;
    network.configure()?;
    ensure!(trouble(&runtime).await?.is_none(), "{:?}", trouble(&runtime).await?);
    node.close_later(runtime);
    Ok(())
}

/// Waits until nothing of a network's pods is left.
pub(super) async fn until_clean(network: &PluginNetwork) -> Result<()> {
    let clean = async {
        while !network.traces()?.is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    match timeout(LONG, clean).await {
        Ok(done) => done,
        Err(_) => anyhow::bail!("left: {:?}", network.traces()?),
    }
}

pub(super) async fn start(node: Node, name: &'static str) -> Result<()> {
    let network = PluginNetwork::new(&node, name, 74)?;
    let journal = network.file("journal");
    network.install(
        "noting",
        "case $CNI_COMMAND in GC|CHECK) echo \"$CNI_COMMAND $CNI_CONTAINERID $input\" >> $HERE/journal;; esac\n\
         [ $CNI_COMMAND != ADD ] || echo \"$input\" | sed 's/.*\"prevResult\":\\({.*}\\),\"type\".*/\\1/'",
    )?;
    network.configure_with(&["noting"])?;
    let choice = network.choice(PodNetworkMode::Cni);
    let runtime = node.open_with(name, choice.clone()).await?;
    let pod = run_pod(&runtime, pod_config("one")).await?;
    drop(runtime);
    // Of another container, as a crash of the machine may leave it.
    let leases = network.file("leases").join(network.name());
    fs::remove_file(&journal).ok();
    let runtime = node.open_with(name, choice).await?;
    let noted = async {
        loop {
            let text = fs::read_to_string(&journal).unwrap_or_default();
            if text.lines().count() >= 2 {
                return text;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let noted = timeout(LONG, noted).await?;
    let calls: Vec<&str> = noted.lines().collect();
    ensure!(calls[0].starts_with("GC  {"), "{noted}");
    let valid = format!("[{{\"containerID\":\"{pod}\",\"ifname\":\"eth0\"}}]");
    ensure!(calls[0].contains(&valid), "{noted}");
    ensure!(calls[1].starts_with(&format!("CHECK {pod} {{")), "{noted}");
    ensure!(leases.exists() && network.leases()?.len() == 2);
    runtime.remove_pod_sandbox(&pod).await?;
    ensure!(network.traces()?.is_empty(), "{:?}", network.traces()?);
    ensure!(run(&["ip", "link", "show", &network.bridge()])?.contains("cnitest"));
    node.close_later(runtime);
    Ok(())
}
