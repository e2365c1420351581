//! A client that asks for one thing at a time, and looks only whether it may have it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_rig::control_plane::CertificateFiles;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::ServerConnector;

const MAX_WAIT: Duration = Duration::from_secs(60);
/// What the server asks a client to wait that causes too many reviews.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const TOO_MANY_REQUESTS: u16 = 429;
/// `HTTP/1.1 200`.
const STATUS_BYTES: usize = 12;

/// A client of the kubelet server.
pub struct AccessClient {
    connector: ServerConnector,
    token: Option<String>,
}

impl AccessClient {
    /// With a certificate, with a token, or with neither.
    ///
    /// # Errors
    /// When the certificate cannot be read.
    pub fn new(
        server: SocketAddr,
        identity: Option<&CertificateFiles>,
        token: Option<&str>,
    ) -> Result<Self> {
        let connector = ServerConnector::new(server, identity)?;
        Ok(Self { connector, token: token.map(str::to_owned) })
    }

    /// The status of the response; its body is not read. A client that is told to come back later does.
    ///
    /// # Errors
    /// When there is no response in time.
    pub async fn status(&self, method: &str, path: &str) -> Result<u16> {
        let end = Instant::now() + MAX_WAIT;
        loop {
            let asked = timeout(MAX_WAIT, self.ask(method, path));
            let status = asked.await.with_context(|| format!("{method} {path}"))??;
            if status != TOO_MANY_REQUESTS || Instant::now() > end {
                return Ok(status);
            }
            sleep(RETRY_AFTER).await;
        }
    }

    async fn ask(&self, method: &str, path: &str) -> Result<u16> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut stream = self.connector.connect_from(any).await?;
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\nContent-Length: 1\r\n{}\r\n2",
            token.unwrap_or_default()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = [0; STATUS_BYTES];
        stream.read_exact(&mut head).await?;
        let head = String::from_utf8_lossy(&head);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.with_context(|| format!("no status in {head:?}"))
    }
}
