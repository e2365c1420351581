//! What pods that plugins have connected can do, and what limits pods on the bridge.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_cri::Runtime;
use oarsman_host::namespaces::NamespaceKind;
use oarsman_host::thread_namespaces;
use oarsman_runtime::PodNetworkMode;

use super::network::{PluginNetwork, addresses, host_port, pod_config, run_pod, trouble};
use super::{namespace, run};
use crate::harness::Node;

const LONG: Duration = Duration::from_secs(20);
const INGRESS: &str = "kubernetes.io/ingress-bandwidth";
const EGRESS: &str = "kubernetes.io/egress-bandwidth";

/// Does something in a network namespace. Sockets stay there.
fn within<T: Send>(place: &Path, work: impl FnOnce() -> T + Send) -> Result<T> {
    let file = File::open(place)?;
    Ok(thread_namespaces::in_existing(file.as_fd(), NamespaceKind::Network, work)?)
}

/// Connects from a namespace, or from the node, to a listener in a pod, and says something.
async fn talk(from: Option<PathBuf>, to: SocketAddr, pod: PathBuf, port: u16) -> Result<()> {
    let listener = within(&pod, || TcpListener::bind(("::", port)))??;
    let exchange = move || -> Result<()> {
        let connect = || TcpStream::connect_timeout(&to, LONG);
        let mut client = match &from {
            Some(from) => within(from, connect)??,
            None => connect()?,
        };
        let (mut server, _) = listener.accept()?;
        server.set_read_timeout(Some(LONG))?;
        client.write_all(b"ping")?;
        let mut bytes = [0; 4];
        server.read_exact(&mut bytes)?;
        ensure!(&bytes == b"ping");
        Ok(())
    };
    tokio::task::spawn_blocking(exchange).await?
}

fn at(address: &str, port: u16) -> Result<SocketAddr> {
    Ok(SocketAddr::new(address.parse()?, port))
}

pub(super) async fn all_of_a_pod(node: Node, name: &'static str) -> Result<()> {
    let network = PluginNetwork::new(&node, name, 71)?;
    network.configure()?;
    let runtime = node.open_with(name, network.choice(PodNetworkMode::Cni)).await?;
    ensure!(trouble(&runtime).await?.is_none(), "{:?}", trouble(&runtime).await?);
    let mut config = pod_config("one");
    config.port_mappings = vec![host_port(18080, 80)];
    config.annotations = [(INGRESS, "16M"), (EGRESS, "8M")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let one = run_pod(&runtime, config).await?;
    let two = run_pod(&runtime, pod_config("two")).await?;
    let (of_one, of_two) = (addresses(&runtime, &one).await?, addresses(&runtime, &two).await?);
    ensure!(of_one.len() == 2 && of_one[0].starts_with("10.77.71."), "{of_one:?}");
    ensure!(of_one[1].starts_with("fd77:71::"), "{of_one:?}");
    let place = |pod: &str| namespace(&node, name, pod);
    for address in &of_one {
        talk(Some(place(&two)), at(address, 80)?, place(&one), 80).await?;
    }
    talk(Some(place(&one)), at(&of_two[0], 81)?, place(&two), 81).await?;
    talk(None, at(&network.gateway(), 18080)?, place(&one), 80).await?;
    // The loopback link is up.
    talk(Some(place(&one)), at("127.0.0.1", 82)?, place(&one), 82).await?;
    let limits = run(&["tc", "class", "show"])? + &run(&["tc", "qdisc", "show"])?;
    ensure!(limits.contains("16Mbit") && limits.contains("8Mbit"), "{limits}");
    let traces = network.traces()?;
    for kind in ["10.77.71.", "master cnitest71 ", "rule ", ": bwp"] {
        ensure!(traces.iter().any(|trace| trace.contains(kind)), "{kind}: {traces:?}");
    }
    for pod in [one, two] {
        runtime.remove_pod_sandbox(&pod).await?;
    }
    ensure!(network.traces()?.is_empty(), "{:?}", network.traces()?);
    node.close_later(runtime);
    Ok(())
}

pub(super) async fn limits_on_the_bridge(node: Node, name: &'static str) -> Result<()> {
    let runtime = node.open(name).await?;
    let limited = |pod: &str, rate: &str| {
        let mut config = pod_config(pod);
        config.annotations.insert(EGRESS.to_owned(), rate.to_owned());
        config.annotations.insert(INGRESS.to_owned(), "3M".to_owned());
        config
    };
    let refused = run_pod(&runtime, limited("wrong", "fast")).await.unwrap_err().to_string();
    ensure!(refused.contains("egress-bandwidth: \"fast\" is no quantity"), "{refused}");
    ensure!(runtime.list_pod_sandboxes(None).await?.is_empty());
    let pod = run_pod(&runtime, limited("right", "5M")).await?;
    let shown = run(&["tc", "qdisc", "show"])?;
    ensure!(shown.contains("rate 5Mbit") && shown.contains("rate 3Mbit"), "{shown}");
    runtime.remove_pod_sandbox(&pod).await?;
    let shown = run(&["tc", "qdisc", "show"])?;
    ensure!(!shown.contains("rate 5Mbit") && !shown.contains("rate 3Mbit"), "{shown}");
    node.close_later(runtime);
    Ok(())
}
