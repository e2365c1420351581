//! Connections to ports of a pod, each a pair of streams of the client's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream as BlockingTcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oarsman_host::blocking;
use oarsman_host::thread_namespaces;
use oarsman_pod_network::NamespaceKind;
use oarsman_streaming::spdy::SpdyHeaders;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::spdy_server::{ClientEvent, ClientWriter, SpdyServer};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 32 << 10;
/// Pieces of data that a port may be behind.
const WAITING: usize = 16;

type Writer = Arc<Mutex<ClientWriter>>;

/// Serves a client until it is gone.
pub(super) async fn serve(server: SpdyServer, network: Option<PathBuf>) {
    let SpdyServer { mut reader, writer } = server;
    let writer: Writer = Arc::new(writer);
    let mut errors: BTreeMap<String, u32> = BTreeMap::new();
    let mut inputs: BTreeMap<u32, mpsc::Sender<Vec<u8>>> = BTreeMap::new();
    // They end with this.
    let mut connections = JoinSet::new();
    while let Some(event) = reader.next(&writer).await {
        match event {
            ClientEvent::Opened { stream, headers } => {
                let of = |name: &str| header(&headers, name);
                if of("streamtype") == "error" {
                    errors.insert(of("requestid"), stream);
                    continue;
                }
                let (sender, input) = mpsc::channel(WAITING);
                inputs.insert(stream, sender);
                let error = errors.get(&of("requestid")).copied();
                let port = of("port").parse().unwrap_or_default();
                let (network, writer) = (network.clone(), Arc::clone(&writer));
                connections.spawn(async move {
                    if let Err(failed) = forward(network, port, stream, input, &writer).await
                        && let Some(error) = error
                    {
                        let message = format!("cannot forward to port {port} of the pod: {failed}");
                        writer.lock().await.data(error, message.as_bytes()).await;
                    }
                    let mut writer = writer.lock().await;
                    writer.end(stream).await;
                    if let Some(error) = error {
                        writer.end(error).await;
                    }
                });
            }
            ClientEvent::Data { stream, bytes } => {
                if let Some(input) = inputs.get(&stream) {
                    // A connection that has ended takes nothing.
                    input.send(bytes).await.ok();
                }
            }
            ClientEvent::Ended { stream } => {
                inputs.remove(&stream);
            }
        }
    }
}

fn header(headers: &SpdyHeaders, wanted: &str) -> String {
    headers
        .iter()
        .find(|(name, _)| name == wanted)
        .map(|(_, value)| value.clone())
        .unwrap_or_default()
}

async fn forward(
    network: Option<PathBuf>,
    port: u16,
    stream: u32,
    mut input: mpsc::Receiver<Vec<u8>>,
    writer: &Writer,
) -> io::Result<()> {
    let connect = move || connect(network.as_deref(), port);
    let socket = blocking::run(connect, io::Error::other).await?;
    let (output, mut to_port) = TcpStream::from_std(socket)?.into_split();
    let send = async {
        while let Some(bytes) = input.recv().await {
            to_port.write_all(&bytes).await?;
        }
        to_port.shutdown().await
    };
    let (sent, received) = tokio::join!(send, receive(output, stream, writer));
    sent.and(received)
}

async fn receive(mut output: OwnedReadHalf, stream: u32, writer: &Writer) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = output.read(&mut buffer).await?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if count == 0 || writer.lock().await.data(stream, bytes).await.is_none() {
            return Ok(());
        }
    }
}

/// Connects to a port of the pod's loopback addresses, in its network namespace.
fn connect(network: Option<&Path>, port: u16) -> io::Result<BlockingTcpStream> {
    let dial = || {
        let to = |address: std::net::IpAddr| {
            BlockingTcpStream::connect_timeout(&SocketAddr::new(address, port), CONNECT_TIMEOUT)
        };
        to(Ipv4Addr::LOCALHOST.into())
            .or_else(|error| to(Ipv6Addr::LOCALHOST.into()).map_err(|_| error))
    };
    let socket = match network {
        Some(network) => {
            let file = File::open(network)?;
            thread_namespaces::in_existing(file.as_fd(), NamespaceKind::Network, dial)??
        }
        None => dial()?,
    };
    socket.set_nonblocking(true)?;
    Ok(socket)
}
