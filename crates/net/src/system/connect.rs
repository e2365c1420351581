//! TCP connections. To a pod of this machine the kernel completes the handshake inside of connect(2): such a connection needs no event
//! of the async runtime, and one that only shows that a server is there is over before it is registered for events.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::names;

/// An established connection.
pub(super) enum Connection {
    /// Not registered for events.
    Plain(std::net::TcpStream),
    Registered(TcpStream),
}

impl Connection {
    /// The connection, registered for events.
    pub(super) fn into_stream(self) -> io::Result<TcpStream> {
        match self {
            Self::Plain(socket) => TcpStream::from_std(socket),
            Self::Registered(socket) => Ok(socket),
        }
    }
}

/// A connection to the first address of the host that takes one.
pub(super) async fn connect(host: &str, port: u16) -> io::Result<Connection> {
    let mut refused = io::Error::new(io::ErrorKind::InvalidInput, "the host has no address");
    for address in names::addresses(host, port).await? {
        match connect_to(address).await {
            Ok(connection) => return Ok(connection),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

async fn connect_to(address: SocketAddr) -> io::Result<Connection> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // The handshake's last acknowledgement goes out with the first data or with the close, which saves a packet. The kernel sends it alone
    // after 200 ms at the latest.
    sockopt::set_tcp_quickack(&socket, false)?;
    let is_connected = match rustix::net::connect(&socket, &address) {
        Ok(()) => true,
        Err(Errno::INPROGRESS) => is_connected(&socket)?,
        Err(error) => return Err(error.into()),
    };
    let socket = std::net::TcpStream::from(socket);
    if is_connected {
        return Ok(Connection::Plain(socket));
    }
    let socket = TcpStream::from_std(socket)?;
    socket.writable().await?;
    match socket.take_error()? {
        Some(error) => Err(error),
        None => Ok(Connection::Registered(socket)),
    }
}

/// Whether the handshake is over; an error if it failed.
fn is_connected(socket: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(socket, PollFlags::OUT)];
    if poll(&mut polled, Some(&Timespec::default()))? == 0 {
        return Ok(false);
    }
    sockopt::socket_error(socket)??;
    Ok(true)
}

/// A connection whose end is told to the peer when it is dropped, without a call of its own before.
pub(super) struct ClosedOnDrop(pub(super) TcpStream);

impl AsyncRead for ClosedOnDrop {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ClosedOnDrop {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_listener_on_this_machine_is_reached_without_an_event_and_a_closed_port_refuses() {
        for host in ["127.0.0.1", "::1"] {
            let listener = tokio::net::TcpListener::bind((host, 0)).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let connection = connect(host, port).await.unwrap();
            assert!(matches!(connection, Connection::Plain(_)), "{host}");
            let stream = connection.into_stream().unwrap();
            assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
            drop(listener);
            let refused = connect(host, port).await.err().map(|error| error.kind());
            assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused), "{host}");
        }
    }

    /// A connection that is closed at once has sent its last acknowledgement with the close.
    #[tokio::test]
    async fn a_connection_that_sends_nothing_is_accepted_and_ends() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(connect("127.0.0.1", port).await.unwrap());
        let (mut accepted, _) =
            tokio::time::timeout(std::time::Duration::from_secs(10), listener.accept())
                .await
                .unwrap()
                .unwrap();
        let mut rest = Vec::new();
        accepted.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"", "it ends in order, without a reset");
    }

    /// A listener whose queue is full answers no handshake: the connection waits for an event.
    #[tokio::test]
    async fn a_handshake_that_is_not_answered_is_waited_for() {
        let listener =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        rustix::net::bind(&listener, &any).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let port = std::net::TcpListener::from(listener.try_clone().unwrap());
        let port = port.local_addr().unwrap().port();
        let mut first = connect("127.0.0.1", port).await.unwrap().into_stream().unwrap();
        // The first one is in the queue once its handshake is complete, which its first byte makes it.
        first.write_all(b"x").await.unwrap();
        let second = tokio::spawn(async move { connect("127.0.0.1", port).await.map(drop) });
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "the queue of the listener is full");
        let accepted = rustix::net::accept(&listener).unwrap();
        // The kernel sends the next handshake again after a second.
        tokio::time::timeout(std::time::Duration::from_secs(30), second)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        drop((first, accepted));
    }
}
