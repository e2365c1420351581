//! Clients with all rights that follow a container's log and stop reading it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_rig::control_plane::CertificateFiles;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::{ServerConnector, raise_descriptor_limit};

/// How long a response may take that has to come.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// What is read of each log in the end.
const LATER_BYTES: usize = 256 * 1024;

/// Readers that have got the beginning of a log, and take nothing of the rest.
pub struct StalledLogReaders {
    connector: ServerConnector,
    streams: Vec<TlsStream<TcpStream>>,
}

impl StalledLogReaders {
    /// None yet, of a server that knows the client by its certificate.
    ///
    /// # Errors
    /// When the certificate cannot be read.
    pub fn new(server: SocketAddr, identity: &CertificateFiles) -> Result<Self> {
        raise_descriptor_limit()?;
        let connector = ServerConnector::new(server, Some(identity))?;
        Ok(Self { connector, streams: Vec::new() })
    }

    /// Begins to follow the log of a container, which must be long.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn follow(&mut self, pod: &str, container: &str) -> Result<()> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut stream = timeout(MAX_WAIT, self.connector.connect_from(any)).await??;
        let path = format!("/containerLogs/default/{pod}/{container}?follow=true");
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: node\r\n\r\n").as_bytes()).await?;
        let mut status = [0; 12];
        timeout(MAX_WAIT, stream.read_exact(&mut status)).await??;
        ensure!(status == *b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&status));
        self.streams.push(stream);
        Ok(())
    }

    /// Reads some of each log, and returns how many could be read.
    ///
    /// # Errors
    /// When the server has disconnected one.
    pub async fn read_some(&mut self) -> Result<usize> {
        for stream in &mut self.streams {
            let mut piece = vec![0; LATER_BYTES];
            let read = timeout(MAX_WAIT, stream.read_exact(&mut piece)).await?;
            read.context("the server has closed the connection of a log reader")?;
        }
        Ok(self.streams.len())
    }
}
