//! `oarsman port-forward`: ports of a pod become ports of this machine.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use futures::future::try_join_all;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_streaming::relay::{self, ForwardRelay};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::output::{print, print_stderr};
use super::{AgentSelector, find_pod};
use crate::local_api::LocalClient;
use crate::threads;

/// Connections that are forwarded at once; others wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// How long a failure to accept, such as too many open files, is waited out.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Which ports of which pod.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman port-forward web 8080           port 8080 of this machine is that of the pod
  oarsman port-forward web 9000:80        port 9000 is port 80 of the pod
  oarsman port-forward web :80            some free port is")]
pub(crate) struct Flags {
    /// The pod: NAME, NAMESPACE/NAME or how it begins.
    pod: String,
    /// The ports: PORT, LOCAL:PORT or :PORT.
    #[arg(required = true, value_parser = parse_ports)]
    ports: Vec<PortPair>,
    /// The address of this machine to listen on.
    #[arg(long, default_value_t = IpAddr::from(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    #[command(flatten)]
    agent: AgentSelector,
}

/// A port here and a port of the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortPair {
    /// Zero for any that is free.
    local: u16,
    remote: u16,
}

fn parse_ports(text: &str) -> Result<PortPair, String> {
    let invalid = || format!("{text:?} is not PORT, LOCAL:PORT or :PORT");
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(invalid);
    match text.split_once(':') {
        None => port(text).map(|port| PortPair { local: port, remote: port }),
        Some(("", remote)) => Ok(PortPair { local: 0, remote: port(remote)? }),
        Some((local, remote)) => Ok(PortPair { local: port(local)?, remote: port(remote)? }),
    }
}

/// Forwards until it is interrupted.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::block_on(async {
        let (client, node) = flags.agent.fetch_report().await?;
        let pod = find_pod::find(&node, &flags.pod)?.pod.full_name();
        let mut listeners = Vec::new();
        for ports in &flags.ports {
            let cannot = || format!("cannot listen on port {}", ports.local);
            let listener = TcpListener::bind((flags.address, ports.local)).await;
            let listener = listener.with_context(cannot)?;
            print(&format!("Forwarding from {} -> {}\n", listener.local_addr()?, ports.remote))?;
            listeners.push((listener, ports.remote));
        }
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let all =
            listeners.iter().map(|(listener, port)| accept(&client, &pod, listener, *port, &slots));
        try_join_all(all).await.map(drop)
    })
}

async fn accept(
    client: &LocalClient,
    pod: &FullName,
    listener: &TcpListener,
    port: u16,
    slots: &Arc<Semaphore>,
) -> Result<()> {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let slot = Arc::clone(slots).acquire_owned().await?;
        match listener.accept().await {
            Ok((stream, _)) => {
                let forwarded = forward(client.clone(), pod.clone(), stream, port);
                connections.spawn(async move {
                    forwarded.await;
                    drop(slot);
                });
            }
            Err(error) => {
                print_stderr(&format!("cannot accept a connection, will retry: {error}"))?;
                sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// A connection that fails ends alone.
async fn forward(client: LocalClient, pod: FullName, stream: TcpStream, port: u16) {
    let failed = match client.port_forward(&pod).await {
        Ok(connection) => {
            let (forward, failure) = ForwardRelay::new(port);
            let report =
                relay::run(stream, connection.stream, Box::new(forward), Duration::ZERO).await;
            let told = failure.get().cloned();
            told.or_else(|| report.outcome.err().map(|error| error.to_string()))
        }
        Err(error) => Some(error.to_string()),
    };
    if let Some(failed) = failed {
        // A closed stderr is no reason to end the other connections.
        print_stderr(&format!("connection to port {port} failed: {failed}")).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_one_two_or_any_here() {
        let pair = |local, remote| Some(PortPair { local, remote });
        let rows = [
            ("80", pair(80, 80)),
            ("9000:80", pair(9000, 80)),
            (":80", pair(0, 80)),
            ("0:80", None),
            ("80:", None),
            ("0", None),
            ("http", None),
            ("70000", None),
        ];
        for (text, want) in rows {
            assert_eq!(parse_ports(text).ok(), want, "{text}");
        }
    }
}
