//! Sessions of this process, spoken to by the relays that the server uses.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use oarsman_cri::{Runtime, StreamingEndpoint};
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerMetadata, CreateContainerRequest, ExecRequest, ImageSpec,
    PortForwardRequest,
};
use oarsman_rig::images;
use oarsman_runtime::EmbeddedRuntime;
use oarsman_streaming::channels::{
    ChannelEvent, ChannelProtocol, ChannelSocket, ERROR, STDERR, STDIN, STDOUT,
};
use oarsman_streaming::relay::{self, ForwardRelay, RemoteCommandRelay, RemoteCommandStreams};
use oarsman_streaming::websocket::FrameMask;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Handle;

use crate::harness::Node;
use crate::reconnect::{remove, run_pod, trial};

const IDLE: Duration = Duration::from_secs(60);

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Vec<Trial> {
    vec![
        trial(node, tokio, "a_command_reads_and_writes_its_streams", exec),
        trial(node, tokio, "a_command_has_a_terminal", terminal),
        trial(node, tokio, "a_port_of_a_pod_is_forwarded_to", forward),
    ]
}

async fn start(runtime: &EmbeddedRuntime, pod: &str, script: &str) -> Result<String> {
    let config = ContainerConfig {
        metadata: Some(ContainerMetadata { name: "main".to_owned(), attempt: 0 }),
        image: Some(ImageSpec { image: images::BUSYBOX.to_owned(), ..ImageSpec::default() }),
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        ..ContainerConfig::default()
    };
    let pod_sandbox_id = pod.to_owned();
    let request =
        CreateContainerRequest { pod_sandbox_id, config: Some(config), sandbox_config: None };
    let id = runtime.create_container(request).await?;
    runtime.start_container(&id).await?;
    Ok(id)
}

fn taken(endpoint: &StreamingEndpoint) -> Result<DuplexStream> {
    match endpoint {
        StreamingEndpoint::Session(session) => session.take().context("a session that is new"),
        other => anyhow::bail!("{other:?}"),
    }
}

/// Runs a command with that input; gives what came on each channel.
async fn run(
    runtime: &EmbeddedRuntime,
    id: &str,
    script: &str,
    tty: bool,
) -> Result<BTreeMap<u8, String>> {
    let endpoint = runtime.exec(ExecRequest {
        container_id: id.to_owned(),
        cmd: ["sh", "-c", script].map(str::to_owned).to_vec(),
        tty,
        stdin: true,
        stdout: true,
        stderr: !tty,
    });
    let stream = taken(&endpoint.await?)?;
    let wanted = RemoteCommandStreams { stdin: true, stdout: true, stderr: !tty, tty };
    let relay = Box::new(RemoteCommandRelay::new(ChannelProtocol::V5, wanted));
    let (mut client, server) = duplex(4096);
    let relayed = tokio::spawn(relay::run(server, stream, relay, IDLE));
    let mask = FrameMask::Random(Box::new(|| [1, 2, 3, 4]));
    let mut socket = ChannelSocket::client(ChannelProtocol::V5, mask);
    let mut bytes = Vec::new();
    socket.send(STDIN, b"hello\n", &mut bytes);
    socket.close_channel(STDIN, &mut bytes);
    client.write_all(&bytes).await?;
    let mut all: BTreeMap<u8, String> = BTreeMap::new();
    let mut buffer = vec![0; 4096];
    loop {
        let count = client.read(&mut buffer).await?;
        let mut replies = Vec::new();
        for event in socket.feed(&buffer[..count], &mut replies)? {
            if let ChannelEvent::Data { channel, bytes } = event {
                all.entry(channel).or_default().push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        if count == 0 {
            break;
        }
    }
    relayed.await?.outcome?;
    Ok(all)
}

async fn exec(node: Node, name: &'static str) -> Result<()> {
    let runtime = node.with_images(name).await?;
    let (pod, _) = run_pod(&runtime).await?;
    let id = start(&runtime, &pod, "sleep 1000").await?;
    let said = run(&runtime, &id, "cat; echo bad >&2; exit 3", false).await?;
    let of = |channel: u8| said.get(&channel).map(String::as_str).unwrap_or_default();
    ensure!((of(STDOUT), of(STDERR)) == ("hello\n", "bad\n"), "{said:?}");
    ensure!(of(ERROR).contains("\"ExitCode\"") && of(ERROR).contains("\"3\""), "{said:?}");
    let said = run(&runtime, &id, "true", false).await?;
    ensure!(said.get(&ERROR).is_some_and(|status| status.contains("Success")), "{said:?}");
    remove(&node, runtime, &pod).await
}

async fn terminal(node: Node, name: &'static str) -> Result<()> {
    let runtime = node.with_images(name).await?;
    let (pod, _) = run_pod(&runtime).await?;
    let id = start(&runtime, &pod, "sleep 1000").await?;
    let said = run(&runtime, &id, "tty; read line; echo got $line", true).await?;
    let output = said.get(&STDOUT).cloned().unwrap_or_default();
    ensure!(output.contains("/dev/pts/") && output.contains("got hello"), "{said:?}");
    remove(&node, runtime, &pod).await
}

async fn forward(node: Node, name: &'static str) -> Result<()> {
    let runtime = node.with_images(name).await?;
    let (pod, _) = run_pod(&runtime).await?;
    start(&runtime, &pod, "while true; do echo answer | nc -l -p 8080; done").await?;
    let request = PortForwardRequest { pod_sandbox_id: pod.clone(), port: vec![8080] };
    loop {
        let stream = taken(&runtime.port_forward(request.clone()).await?)?;
        let (mut client, server) = duplex(4096);
        let (relay, failure) = ForwardRelay::new(8080);
        let relayed = tokio::spawn(relay::run(server, stream, Box::new(relay), IDLE));
        client.shutdown().await?;
        let mut said = String::new();
        client.read_to_string(&mut said).await?;
        relayed.await?.outcome?;
        if said == "answer\n" {
            break;
        }
        // Until the program listens.
        ensure!(failure.get().is_some_and(|why| why.contains("refused")), "{said:?} {failure:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    remove(&node, runtime, &pod).await
}
