//! TCP connections to registries, directly or through a proxy. A registry that sends us elsewhere cannot send us to this machine, whose
//! services may trust what comes from it.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use oarsman_net::addresses;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

/// Which addresses may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressRule {
    /// Any: the registry itself, which was named by the pod or the administrator.
    Any,
    /// None of this machine and none that only means something on its links, such as a cloud's metadata service.
    NotThisMachine,
}

/// Makes connections.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    pub(crate) proxies: Arc<Matcher>,
    pub(crate) rule: AddressRule,
    pub(crate) limit: Duration,
}

impl Service<Uri> for Dialer {
    type Response = RegistryConnection;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<RegistryConnection>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the connection takes too long");
            timeout(dialer.limit, dialer.dial(&target)).await.map_err(late)?
        })
    }
}

impl Dialer {
    async fn dial(&self, target: &Uri) -> io::Result<RegistryConnection> {
        let Some(proxy) = self.proxies.intercept(target) else {
            let stream = connect(target, self.rule).await?;
            return Ok(RegistryConnection { stream, is_proxied: false });
        };
        // A name is looked up by the proxy, in a network that is not ours.
        if let (Ok(address), AddressRule::NotThisMachine) = (host(target).parse(), self.rule) {
            refuse_own(address)?;
        }
        if target.scheme() == Some(&Scheme::HTTP) {
            let stream = connect(proxy.uri(), AddressRule::Any).await?;
            return Ok(RegistryConnection { stream, is_proxied: true });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), ProxyDialer);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let stream = tunnel.call(target.clone()).await.map_err(io::Error::other)?;
        Ok(RegistryConnection { stream, is_proxied: false })
    }
}

/// Connects to the proxy itself.
#[derive(Clone, Copy, Debug)]
struct ProxyDialer;

impl Service<Uri> for ProxyDialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<TcpStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, proxy: Uri) -> Self::Future {
        Box::pin(async move { connect(&proxy, AddressRule::Any).await })
    }
}

async fn connect(target: &Uri, rule: AddressRule) -> io::Result<TokioIo<TcpStream>> {
    let usual = if target.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
    let found = addresses(host(target), target.port_u16().unwrap_or(usual)).await?;
    if rule == AddressRule::NotThisMachine {
        // All of them: one that is refused would only be the second choice of an attacker.
        found.iter().try_for_each(|address| refuse_own(address.ip()))?;
    }
    let stream = TcpStream::connect(found.as_slice()).await?;
    Ok(TokioIo::new(stream))
}

fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_matches(['[', ']'])
}

fn refuse_own(address: IpAddr) -> io::Result<()> {
    if !is_of_this_machine(address) {
        return Ok(());
    }
    let why = format!("{address} is an address of this node or of its links only");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Whether a registry's host is this machine. Then its redirects may lead here, too.
pub(crate) async fn is_own_host(uri: &Uri) -> bool {
    let found = addresses(host(uri), 0).await.unwrap_or_default();
    found.iter().any(|address| is_of_this_machine(address.ip()))
}

fn is_of_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_special = match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified(),
    };
    // Only an address of this machine can be bound to.
    is_special || UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// A connection to a registry or to the proxy before it.
#[derive(Debug)]
pub(crate) struct RegistryConnection {
    stream: TokioIo<TcpStream>,
    /// Whether requests have to name the whole URL.
    is_proxied: bool,
}

impl Connection for RegistryConnection {
    fn connected(&self) -> Connected {
        self.stream.inner().connected().proxy(self.is_proxied)
    }
}

impl Read for RegistryConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for RegistryConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_of_its_links_are_known() {
        let rows = [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", true),
            ("169.254.169.254", true),
            ("fe80::1", true),
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ];
        for (address, wanted) in rows {
            assert_eq!(is_of_this_machine(address.parse().unwrap()), wanted, "{address}");
        }
    }
}
