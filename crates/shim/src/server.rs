//! The loop of a shim: one thread that waits for its socket, its children, and the streams of its containers.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use oarsman_clock::{Clock, SystemClock};
use oarsman_core::time::Mono;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::directory::ShimDirectory;
use crate::protocol::{PROTOCOL, ShimHello};

mod attach;
mod cgroups;
mod connection;
mod console;
mod container;
mod exec;
mod lifecycle;
mod logs;
mod output;
mod pod_namespace;
mod reap;
mod requests;
mod stdin;
mod steps;

pub(crate) use cgroups::ContainerCgroups;
use connection::ShimConnection;
use container::HeldContainer;
use exec::ExecProcess;
use steps::HelperStep;

/// What a descriptor that is waited for belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Waited {
    Listener,
    Children,
    Logs,
    Connection(u64),
    Output(String, usize),
    StdinSource(String, usize),
    StdinSink(String),
    Attached(String, usize),
    Console(u64),
}

/// Where a reply goes: the connection and the request's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReplyAddress {
    connection: u64,
    number: u64,
}

/// Everything that a shim holds.
#[derive(Debug)]
pub(crate) struct ShimServer {
    directory: ShimDirectory,
    clock: SystemClock,
    listener: UnixListener,
    children: UnixStream,
    /// Where the threads of logs say that something has happened, and their end of it.
    logs: UnixStream,
    log_notify: UnixStream,
    connections: BTreeMap<u64, ShimConnection>,
    subscribers: Vec<ReplyAddress>,
    containers: BTreeMap<String, HeldContainer>,
    execs: BTreeMap<u64, ExecProcess>,
    steps: BTreeMap<u64, HelperStep>,
    /// Children that ended before the helper told whose they are, by pid; only while there are helpers.
    unclaimed: BTreeMap<u32, reap::RawExit>,
    cgroups: ContainerCgroups,
    pod_init: Option<pod_namespace::PodInit>,
    next: u64,
    ending: bool,
}

impl ShimServer {
    pub(crate) fn new(
        directory: ShimDirectory,
        listener: UnixListener,
        cgroups: ContainerCgroups,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (children, signalled) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, signalled)?;
        let (logs, log_notify) = UnixStream::pair()?;
        logs.set_nonblocking(true)?;
        log_notify.set_nonblocking(true)?;
        Ok(Self {
            logs,
            log_notify,
            directory,
            clock: SystemClock::start(),
            listener,
            children,
            connections: BTreeMap::new(),
            subscribers: Vec::new(),
            containers: BTreeMap::new(),
            execs: BTreeMap::new(),
            steps: BTreeMap::new(),
            unclaimed: BTreeMap::new(),
            cgroups,
            pod_init: None,
            next: 0,
            ending: false,
        })
    }

    /// Serves until it is told to end.
    pub(crate) fn run(mut self) -> io::Result<()> {
        while !self.is_over() {
            let ready = self.wait()?;
            for (waited, events) in ready {
                self.handle(&waited, events);
            }
            self.reap();
            self.handle_deadlines();
            self.settle_logs();
            self.finish_exits();
            self.drop_broken_connections();
        }
        Ok(())
    }

    /// Told to end, and the answer to that has gone out.
    fn is_over(&self) -> bool {
        self.ending
            && self.connections.values().all(|c| c.is_broken() || c.wants() == PollFlags::IN)
    }

    fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn wait(&self) -> io::Result<Vec<(Waited, PollFlags)>> {
        let mut waited = vec![Waited::Listener, Waited::Children, Waited::Logs];
        let mut descriptors = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.children, PollFlags::IN),
            PollFd::new(&self.logs, PollFlags::IN),
        ];
        let mut add = |what: Waited, descriptor, flags| {
            waited.push(what);
            descriptors.push(PollFd::from_borrowed_fd(descriptor, flags));
        };
        for (id, connection) in &self.connections {
            add(Waited::Connection(*id), connection.socket().as_fd(), connection.wants());
        }
        for (number, step) in &self.steps {
            if let Some(console) = step.console() {
                add(Waited::Console(*number), console, PollFlags::IN);
            }
        }
        for container in self.containers.values() {
            container.add_waits(&mut add);
        }
        match poll(&mut descriptors, self.timeout().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let events: Vec<PollFlags> = descriptors.iter().map(PollFd::revents).collect();
        let ready = waited.into_iter().zip(events).filter(|(_, events)| !events.is_empty());
        Ok(ready.collect())
    }

    /// How long until something is due; none for ever.
    fn timeout(&self) -> Option<Timespec> {
        let containers = self.containers.values().filter_map(HeldContainer::deadline);
        let execs = self.execs.values().filter_map(|exec| exec.deadline);
        let steps = self.steps.values().map(|step| step.deadline);
        let first = containers.chain(execs).chain(steps).min()?;
        let wait = first.since(self.clock.mono()) + Duration::from_millis(1);
        Timespec::try_from(wait).ok()
    }

    fn handle(&mut self, waited: &Waited, events: PollFlags) {
        match waited {
            Waited::Listener => self.accept(),
            Waited::Children => reap::drain(&self.children),
            Waited::Logs => reap::drain(&self.logs),
            Waited::Connection(id) => self.serve(*id, events),
            Waited::Console(number) => self.receive_console(*number),
            Waited::Output(id, at) => self.read_output(id, *at),
            Waited::StdinSource(id, at) => self.read_stdin(id, *at),
            Waited::StdinSink(id) => self.write_stdin(id),
            Waited::Attached(id, at) => self.flush_attached(id, *at, events),
        }
    }

    fn accept(&mut self) {
        // One that has gone again is no concern of ours.
        while let Ok((socket, _)) = self.listener.accept() {
            let Ok(mut connection) = ShimConnection::new(socket) else { continue };
            let program = env!("CARGO_PKG_VERSION").to_owned();
            let hello = ShimHello { protocol: PROTOCOL, program, pid: std::process::id() };
            connection.send(&hello, None);
            let id = self.next_number();
            self.connections.insert(id, connection);
        }
    }

    fn serve(&mut self, id: u64, events: PollFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if events.contains(PollFlags::OUT) {
            connection.flush();
        }
        for frame in connection.receive() {
            let to = ReplyAddress { connection: id, number: frame.number };
            self.answer(to, &frame.request);
        }
    }

    fn drop_broken_connections(&mut self) {
        let before = self.connections.len();
        self.connections.retain(|_, connection| !connection.is_broken());
        if self.connections.len() < before {
            self.end_abandoned_execs();
        }
        let there = |to: &ReplyAddress| self.connections.contains_key(&to.connection);
        self.subscribers.retain(there);
    }

    fn handle_deadlines(&mut self) {
        let now = self.clock.mono();
        self.kill_late_execs(now);
        self.kill_late_steps(now);
        for container in self.containers.values_mut() {
            container.flush_log(now);
            container.drop_broken_clients();
            container.outputs.retain(|output| !output.ended);
        }
    }

    fn now(&self) -> Mono {
        self.clock.mono()
    }
}
