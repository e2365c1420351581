//! A client that reads one answer, as a scraper of metrics does.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_rig::control_plane::CertificateFiles;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::ServerConnector;

/// How long an answer may take that has to come.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The body of the answer to a GET, from a server that knows the client by its certificate.
///
/// # Errors
/// When the server does not answer with 200, or not in time.
pub async fn scrape(server: SocketAddr, identity: &CertificateFiles, path: &str) -> Result<String> {
    let connector = ServerConnector::new(server, Some(identity))?;
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let answer = async {
        let mut stream = connector.connect_from(any).await?;
        // To a client of HTTP/1.0 the body comes as it is, and ends with the connection.
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: node\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, anyhow::Error>(String::from_utf8(answer)?)
    };
    let answer = timeout(MAX_WAIT, answer).await.with_context(|| format!("{path} in time"))??;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    let status = head.split(' ').nth(1);
    ensure!(status == Some("200"), "{path}: {answer}");
    Ok(body.to_owned())
}
