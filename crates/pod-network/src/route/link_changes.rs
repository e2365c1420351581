//! Waiting for a link to change, with a deadline.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// The group of those who want to know of links.
const RTMGRP_LINK: u32 = 1;

/// What tells that links of the namespace in which it was opened have changed, up to a deadline.
#[derive(Debug)]
pub(crate) struct LinkChanges {
    socket: OwnedFd,
    deadline: OwnedFd,
}

impl LinkChanges {
    /// Listens from now on, and for so long.
    pub(crate) fn until(deadline: Duration) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, RTMGRP_LINK))?;
        Ok(Self { socket, deadline: timer(deadline)? })
    }

    /// Waits for a change of any link since the last call.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        let mut waited =
            [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&self.deadline, PollFlags::IN)];
        retry_on_intr(|| poll(&mut waited, None))?;
        if !waited[1].revents().is_empty() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.take_all()
    }

    /// The waiting thread reads the state of the links itself, so it does not matter when some of the messages were lost.
    fn take_all(&self) -> io::Result<()> {
        let mut ignored = [0; 16];
        loop {
            match recv(&self.socket, ignored.as_mut_slice(), RecvFlags::empty()) {
                Ok(_) | Err(Errno::NOBUFS | Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A descriptor that can be read from after that time.
fn timer(after: Duration) -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let it_value = Timespec::try_from(after).map_err(|_| io::ErrorKind::InvalidInput)?;
    let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Itimerspec { it_interval, it_value };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    Ok(timer)
}
