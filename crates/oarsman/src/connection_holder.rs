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

/// The name of the command that the program is started anew with.
pub(crate) const COMMAND: &str = "hold-connections";

/// A connection comes with this byte; any other word is farewell.
const CONNECTION: u8 = b'c';
const RELEASE: u8 = b'q';

/// When the runtime has said nothing for this long, no call is under way any more.
const QUIET_PERIOD: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// A runtime that never falls silent, since it tells of others' containers too, is heard out for this many pauses: half a minute.
const ROUNDS: usize = 300;
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The agent's end of the line to its keeper.
#[derive(Debug)]
pub(crate) struct ConnectionHolderHandle {
    socket: Mutex<UnixStream>,
}

impl ConnectionHolderHandle {
    /// Starts the keeper.
    pub(crate) fn start() -> Result<Self> {
        let (ours, theirs) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let program = std::env::current_exe().context("cannot find this program")?;
        // Whatever the agent is called, its keeper is not a kubelet.
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

    /// Lets the keeper go: whoever ends in order has no call under way.
    pub(crate) fn release(&self) {
        if let Ok(mut socket) = self.socket.lock() {
            // One that has ended already needs no farewell.
            socket.write_all(&[RELEASE]).ok();
        }
    }
}

/// Nobody who is killed comes here.
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

/// What the keeper hears.
enum HolderMessage {
    Connections(Vec<OwnedFd>),
    Release,
    /// The agent has ended without a word.
    AgentGone,
}

/// The keeper's own life: takes connections until the agent is gone, and then holds them until the runtime has no more to say.
pub(crate) fn run_holder() -> Result<()> {
    // Whoever interrupts the agent at a terminal interrupts its whole group; the keeper goes when the agent has gone.
    rustix::process::setsid().ok();
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut connections = Vec::new();
    loop {
        match receive(&socket)? {
            HolderMessage::Connections(more) => connections.extend(more),
            HolderMessage::Release => return Ok(()),
            HolderMessage::AgentGone => break,
        }
        // Those that the runtime has closed are of no use any more.
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

/// Hears the runtime out, for a while at most.
fn wait_until_quiet(connections: Vec<OwnedFd>) {
    let mut connections: Vec<File> = connections.into_iter().map(File::from).collect();
    for _ in 0..ROUNDS {
        let mut polled: Vec<PollFd<'_>> =
            connections.iter().map(|it| PollFd::new(it, PollFlags::IN)).collect();
        // Nobody speaks any more, or nobody is left to listen to.
        if polled.is_empty() || !poll(&mut polled, Some(&QUIET_PERIOD)).is_ok_and(|speak| speak > 0)
        {
            return;
        }
        let speak: Vec<bool> = polled.iter().map(|it| !it.revents().is_empty()).collect();
        let mut speak = speak.into_iter();
        connections.retain_mut(|it| !speak.next().unwrap_or_default() || read_some(it));
        // Not again at every word: whoever waits for the runtime's last one has time.
        poll(&mut [], Some(&PAUSE)).ok();
    }
}

/// Takes what the runtime says; false when it has closed the connection.
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
    fn a_connection_reaches_the_keeper_and_so_does_farewell() {
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
        // The agent's end is gone, and the connection is not.
        runtime.write_all(b"answer").unwrap();
        assert!(!is_closed(&kept[0]));
        drop(runtime);
        assert!(is_closed(&kept[0]));
        held.release();
        assert!(matches!(receive(&theirs).unwrap(), HolderMessage::Release));
        // Whoever ends in order says so once more.
        drop(held);
        assert!(matches!(receive(&theirs).unwrap(), HolderMessage::Release));
        assert!(matches!(receive(&theirs).unwrap(), HolderMessage::AgentGone));
    }
}
