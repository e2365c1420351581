//! Answers requests.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};
use serde::Deserialize;
use serde_json::Value;

use super::attach::AttachedStream;
use super::container::HeldContainer;
use super::reap::signal_process;
use super::{ReplyAddress, ShimServer};
use crate::log::WrittenStream;
use crate::protocol::{RefusalKind, ShimReply, ShimRequest, StreamSet};

impl ShimServer {
    pub(super) fn reply(&mut self, to: ReplyAddress, reply: ShimReply) {
        if let Some(connection) = self.connections.get_mut(&to.connection) {
            connection.reply(to.number, reply, None);
        }
    }

    pub(super) fn refuse(&mut self, to: ReplyAddress, kind: RefusalKind, message: String) {
        self.reply(to, ShimReply::Refused { kind, message });
    }

    pub(super) fn refuse_unknown(&mut self, to: ReplyAddress, id: &str) {
        self.refuse(to, RefusalKind::NotFound, format!("there is no container {id}"));
    }

    fn finish(&mut self, to: ReplyAddress, result: io::Result<()>, what: &str) {
        match result {
            Ok(()) => self.reply(to, ShimReply::Done),
            Err(error) => self.refuse(to, RefusalKind::Failed, format!("cannot {what}: {error}")),
        }
    }

    pub(super) fn answer(&mut self, to: ReplyAddress, request: &Value) {
        let request = match ShimRequest::deserialize(request) {
            Ok(request) => request,
            Err(error) => {
                let message = format!("this shim does not understand the request: {error}");
                return self.refuse(to, RefusalKind::UnknownRequest, message);
            }
        };
        let expected = match &request {
            ShimRequest::Exec(exec) => exec.streams.count(),
            ShimRequest::Attach { streams, .. } => streams.count(),
            _ => 0,
        };
        let connection = self.connections.get_mut(&to.connection);
        let Some(descriptors) =
            connection.and_then(|connection| connection.take_descriptors(expected))
        else {
            let message = format!("the request needs {expected} descriptors beside it");
            return self.refuse(to, RefusalKind::Invalid, message);
        };
        match request {
            ShimRequest::List => {
                let containers = self.containers.values().map(HeldContainer::report).collect();
                self.reply(to, ShimReply::Containers { containers });
            }
            ShimRequest::Create(request) => self.create(to, &request),
            ShimRequest::Start { container } => self.start(to, &container),
            ShimRequest::Kill { container, signal, all } => self.kill(to, &container, signal, all),
            ShimRequest::Wait { container } => self.wait_for(to, &container),
            ShimRequest::Delete { container } => self.delete(to, &container),
            ShimRequest::Exec(request) => self.exec(to, *request, descriptors),
            ShimRequest::Attach { container, streams } => {
                self.attach(to, &container, streams, descriptors);
            }
            ShimRequest::Resize { container, width, height } => {
                self.resize(to, &container, width, height);
            }
            ShimRequest::ReopenLog { container } => self.reopen_log(to, &container),
            ShimRequest::Update { container, resources } => self.update(to, &container, &resources),
            ShimRequest::PidNamespace { user_namespace } => {
                self.pid_namespace(to, user_namespace.as_deref());
            }
            ShimRequest::Events => {
                self.subscribers.push(to);
                self.reply(to, ShimReply::Done);
            }
            ShimRequest::Shutdown => self.shut_down(to),
        }
    }

    fn attach(
        &mut self,
        to: ReplyAddress,
        id: &str,
        streams: StreamSet,
        descriptors: Vec<OwnedFd>,
    ) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        if container.exit.is_some() {
            let message = format!("container {id} has ended, so nothing can be attached to it");
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        if streams.stdin && !container.stdin.is_open() {
            let message = format!("container {id} has no open stdin to attach to");
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        let result = container.attach(streams, descriptors);
        self.finish(to, result, &format!("attach to container {id}"));
    }

    fn resize(&mut self, to: ReplyAddress, id: &str, width: u16, height: u16) {
        let Some(container) = self.containers.get(id) else {
            return self.refuse_unknown(to, id);
        };
        let Some(terminal) = &container.terminal else {
            let message = format!("container {id} has no terminal");
            return self.refuse(to, RefusalKind::WrongState, message);
        };
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        let result = tcsetwinsize(terminal, size).map_err(io::Error::from);
        self.finish(to, result, &format!("resize the terminal of container {id}"));
    }

    fn reopen_log(&mut self, to: ReplyAddress, id: &str) {
        let Some(container) = self.containers.get_mut(id) else {
            return self.refuse_unknown(to, id);
        };
        match &container.log {
            Some(log) => {
                log.reopen();
                container.reopening.push(to);
            }
            None => self.reply(to, ShimReply::Done),
        }
    }

    fn shut_down(&mut self, to: ReplyAddress) {
        if !self.containers.is_empty() || !self.steps.is_empty() {
            let message = format!(
                "the shim still has {} containers; delete them first",
                self.containers.len()
            );
            return self.refuse(to, RefusalKind::WrongState, message);
        }
        if let Some(init) = self.pod_init.take() {
            signal_process(init.child.id(), Signal::KILL);
        }
        self.ending = true;
        self.reply(to, ShimReply::Done);
    }
}

impl HeldContainer {
    fn attach(&mut self, streams: StreamSet, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let mut given = descriptors.into_iter();
        if streams.stdin
            && let Some(source) = given.next()
        {
            self.stdin.attach(source)?;
        }
        let outputs =
            [(streams.stdout, WrittenStream::Stdout), (streams.stderr, WrittenStream::Stderr)];
        for (_, stream) in outputs.into_iter().filter(|(wanted, _)| *wanted) {
            if let Some(descriptor) = given.next() {
                self.attached.push(AttachedStream::new(stream, descriptor)?);
            }
        }
        Ok(())
    }
}
