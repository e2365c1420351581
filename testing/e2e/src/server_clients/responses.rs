//! Single requests of a client that the server knows by its certificate.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_rig::control_plane::CertificateFiles;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::ServerConnector;

const MAX_WAIT: Duration = Duration::from_secs(60);

/// The body of a response to a GET, which must be 200.
///
/// # Errors
/// When the server cannot be reached, or answers something else.
pub async fn get_text(
    server: SocketAddr,
    identity: &CertificateFiles,
    path: &str,
) -> Result<String> {
    let connector = ServerConnector::new(server, Some(identity))?;
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let mut stream = timeout(MAX_WAIT, connector.connect_from(any)).await??;
    // The body of an older response ends with its connection and has no chunks.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: node\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    timeout(MAX_WAIT, stream.read_to_string(&mut response)).await??;
    let (head, body) = response.split_once("\r\n\r\n").context("a response has a head")?;
    let status = head.split(' ').nth(1);
    ensure!(status == Some("200"), "GET {path}: {head}: {body}");
    Ok(body.to_owned())
}
