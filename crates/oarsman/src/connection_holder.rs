//! A small process beside the agent that holds its connections to the runtime a little longer than the agent lives.
//!
//! When an agent is killed in the middle of a call, the runtime sees its connection close, gives the call up, and may lose what it
//! had made by then: containerd forgets a shim that it was just starting. With a second handle on the connection the call runs to its
//! end, and the next agent finds what came of it. See docs/adr/0010.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result};
use oarsman_cri::ConnectionHolder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The subcommand by which the program starts itself as connection holder.
pub(crate) const COMMAND: &str = "hold-connections";

/// The byte that a file descriptor is sent with; any other byte means that the agent ends in order.
const CONNECTION: u8 = b'c';
const RELEASE: u8 = b'q';

/// When the runtime has said nothing for this long, no call is under way any more.
const QUIET_PERIOD: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// A runtime that never falls silent, since it also sends events of containers of others, is read for this many pauses: half a minute.
const ROUNDS: usize = 300;
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The agent's end of the socket to its connection holder.
#[derive(Debug)]
pub(crate) struct ConnectionHolderHandle {
    socket: Mutex<UnixStream>,
}

impl ConnectionHolderHandle {
    /// Starts the connection holder.
    pub(crate) fn start() -> Result<Self> {
        let (ours, theirs) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let program = std::env::current_exe().context("cannot find this program")?;
        // Under whatever name the agent was started, the connection holder must not run as `kubelet`.
        Command::new(program)
            .arg0("oarsman")
            .arg(COMMAND)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the process that holds connections")?;
        Ok(Self { socket: Mutex::new(ours) })
    }

    /// Ends the connection holder: an agent that ends in order has no call under way.
    pub(crate) fn release(&self) {
        if let Ok(mut socket) = self.socket.lock() {
            // A holder that has ended already cannot be told.
            socket.write_all(&[RELEASE]).ok();
        }
    }
}

/// A killed agent does not run this, and then the holder goes on.
impl Drop for ConnectionHolderHandle {
    fn drop(&mut self) {
        self.release();
    }
}

impl ConnectionHolder for ConnectionHolderHandle {
    fn hold(&self, connection: BorrowedFd<'_>) {
        let Ok(socket) = self.socket.lock() else { return };
        if let Err(error) = send(&socket, connection) {
            tracing::warn!(task = "connection holder", %error, "runtime connection not handed to the connection holder");
        }
    }
}

fn send(socket: &UnixStream, connection: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    let handles = [connection];
    message.push(SendAncillaryMessage::ScmRights(&handles));
    sendmsg(socket, &[IoSlice::new(&[CONNECTION])], &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// A message that the connection holder receives.
enum HolderMessage {
    Connections(Vec<OwnedFd>),
    Release,
    /// The agent's end of the socket was closed without a release.
    AgentGone,
}

/// The main loop of the connection holder: takes connections until the agent is gone, and then holds them until the runtime is silent.
pub(crate) fn run_holder() -> Result<()> {
    // Ctrl-C at a terminal signals the whole process group; the connection holder must outlive the agent.
    rustix::process::setsid().ok();
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut connections = Vec::new();
    loop {
        match receive(&socket)? {
            HolderMessage::Connections(more) => connections.extend(more),
            HolderMessage::Release => return Ok(()),
            HolderMessage::AgentGone => break,
        }
        // Connections that the runtime has closed are of no use.
        connections.retain(|connection| !is_closed(connection));
    }
    wait_until_quiet(connections);
    Ok(())
}

fn receive(socket: &UnixStream) -> Result<HolderMessage> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let read = recvmsg(socket, &mut bytes, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    Ok(match (read.bytes, byte) {
        (0, _) => HolderMessage::AgentGone,
        (_, [RELEASE]) => HolderMessage::Release,
        _ => HolderMessage::Connections(ancillary.drain().flat_map(handles).collect()),
    })
}

fn handles(message: RecvAncillaryMessage<'_>) -> Vec<OwnedFd> {
    match message {
        RecvAncillaryMessage::ScmRights(handles) => handles.collect(),
        _ => Vec::new(),
    }
}

fn is_closed(connection: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(connection, PollFlags::RDHUP)];
    let gone = PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR;
    poll(&mut polled, Some(&Timespec::default())).is_ok()
        && polled.iter().any(|it| it.revents().intersects(gone))
}

/// Reads from the runtime until it is silent, for half a minute at most.
fn wait_until_quiet(connections: Vec<OwnedFd>) {
    let mut connections: Vec<File> = connections.into_iter().map(File::from).collect();
    for _ in 0..ROUNDS {
        let mut polled: Vec<PollFd<'_>> =
            connections.iter().map(|it| PollFd::new(it, PollFlags::IN)).collect();
        // The runtime is silent, or has closed all connections.
        if polled.is_empty() || !poll(&mut polled, Some(&QUIET_PERIOD)).is_ok_and(|speak| speak > 0)
        {
            return;
        }
        let speak: Vec<bool> = polled.iter().map(|it| !it.revents().is_empty()).collect();
        let mut speak = speak.into_iter();
        connections.retain_mut(|it| !speak.next().unwrap_or_default() || read_some(it));
        // The pause keeps a runtime that writes much from making this a busy loop.
        poll(&mut [], Some(&PAUSE)).ok();
    }
}

/// Reads and drops what the runtime sends; false when it has closed the connection.
fn read_some(connection: &mut File) -> bool {
    let mut words = [0; 16 * 1024];
    match connection.read(&mut words) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_the_release_message_reach_the_holder() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let held = ConnectionHolderHandle { socket: Mutex::new(ours) };
        let (mut agent, mut runtime) = UnixStream::pair().unwrap();
        held.hold(agent.as_fd());
        let HolderMessage::Connections(kept) = receive(&theirs).unwrap() else {
            panic!("no connection")
        };
        assert_eq!(kept.len(), 1);
        agent.write_all(b"x").unwrap();
        drop(agent);
        runtime.read_exact(&mut [0]).unwrap();
        // The agent's descriptor is closed, and the connection is not.
        runtime.write_all(b"answer").unwrap();
        assert!(!is_closed(&kept[0]));
        drop(runtime);
        assert!(is_closed(&kept[0]));
        held.release();
        assert!(matches!(receive(&theirs).unwrap(), HolderMessage::Release));
        // Dropping the handle sends the release message.
        drop(held);
        assert!(matches!(receive(&theirs).unwrap(), HolderMessage::Release));
        assert!(matches!(receive(&theirs).unwrap(), HolderMessage::AgentGone));
    }
}
