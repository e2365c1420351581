//! Clients with all rights that execute `cat` in a container by `v4.channel.k8s.io`, the WebSocket protocol of older clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_rig::control_plane::CertificateFiles;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::{ServerConnector, raise_descriptor_limit};

const MAX_WAIT: Duration = Duration::from_secs(60);
const MAX_HEAD_BYTES: usize = 8 * 1024;
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
/// The frames by which a server asks whether the client is there, and by which it is answered.
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// A final frame with binary data.
const BINARY: u8 = 0x82;
/// The bit of a frame's length that says that it is masked, which frames of a client must be. The mask of these is zero.
const MASKED: u8 = 0x80;
const MASK: [u8; 4] = [0; 4];

/// Commands that run until their client goes.
pub struct ExecSessions {
    connector: ServerConnector,
    streams: Vec<TlsStream<TcpStream>>,
}

impl ExecSessions {
    /// None yet, of a server that knows the client by its certificate.
    ///
    /// # Errors
    /// When the certificate cannot be read.
    pub fn new(server: SocketAddr, identity: &CertificateFiles) -> Result<Self> {
        raise_descriptor_limit()?;
        let connector = ServerConnector::new(server, Some(identity))?;
        Ok(Self { connector, streams: Vec::new() })
    }

    /// Begins one more in a container.
    ///
    /// # Errors
    /// When the server does not switch protocols.
    pub async fn begin(&mut self, pod: &str, container: &str) -> Result<()> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut stream = timeout(MAX_WAIT, self.connector.connect_from(any)).await??;
        let path = format!("/exec/default/{pod}/{container}?command=cat&input=1&output=1");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
             Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let head = timeout(MAX_WAIT, read_head(&mut stream)).await??;
        let is_switched = head.starts_with("HTTP/1.1 101") && head.contains("v4.channel.k8s.io");
        ensure!(is_switched, "{head}");
        self.streams.push(stream);
        Ok(())
    }

    /// Sends a line to each command and reads it back, and returns how many answered.
    ///
    /// # Errors
    /// When one does not.
    pub async fn echo(&mut self, line: &str) -> Result<usize> {
        for stream in &mut self.streams {
            stream.write_all(&frame(line)?).await?;
            let answered = timeout(MAX_WAIT, read_output(stream, line.as_bytes())).await;
            answered.context("no answer")??;
        }
        Ok(self.streams.len())
    }
}

async fn read_head(stream: &mut TlsStream<TcpStream>) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head)?)
}

fn frame(line: &str) -> Result<Vec<u8>> {
    let length = u8::try_from(line.len() + 1).ok().filter(|length| *length < 126);
    let length = length.context("a short line is in a short frame")?;
    Ok([&[BINARY, MASKED | length][..], &MASK, &[STDIN], line.as_bytes()].concat())
}

/// Reads frames until those of the output have these bytes.
async fn read_output(stream: &mut TlsStream<TcpStream>, wanted: &[u8]) -> Result<()> {
    let mut output = Vec::new();
    while output.len() < wanted.len() {
        let (kind, length) = (stream.read_u8().await?, stream.read_u8().await?);
        ensure!(length < 126, "an answer to a short line is in a short frame: {length}");
        let mut payload = vec![0; usize::from(length)];
        stream.read_exact(&mut payload).await?;
        if kind == PING {
            stream.write_all(&[&[PONG, MASKED][..], &MASK].concat()).await?;
            continue;
        }
        ensure!(kind == BINARY, "a frame of kind {kind:#x}: {payload:?}");
        match payload.split_first() {
            Some((&STDOUT, bytes)) => output.extend_from_slice(bytes),
            Some((_, bytes)) => ensure!(bytes.is_empty(), "{:?}", String::from_utf8_lossy(bytes)),
            None => {}
        }
    }
    ensure!(output == wanted, "{:?}", String::from_utf8_lossy(&output));
    Ok(())
}
