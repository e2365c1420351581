//! The notification protocol of systemd (`sd_notify`): ready, watchdog, stopping. Without `NOTIFY_SOCKET` nothing is sent.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use oarsman_agent::AgentCommand;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// The socket of systemd, and the interval of its watchdog.
#[derive(Clone, Debug, Default)]
pub(crate) struct SystemdNotifier {
    socket: Option<Arc<UnixDatagram>>,
    /// Half of systemd's own watchdog timeout.
    watchdog_interval: Option<Duration>,
}

impl SystemdNotifier {
    /// From `NOTIFY_SOCKET` and `WATCHDOG_USEC`.
    pub(crate) fn of_environment() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty());
        let socket = socket.and_then(|path| {
            let told = |error: &io::Error| {
                let path = path.display();
                tracing::error!(%path, %error, "systemd notification socket not connected");
            };
            connect(&path).inspect_err(told).ok()
        });
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let own = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let beat = number("WATCHDOG_USEC").filter(|usec| own && *usec > 0);
        let socket = socket.map(Arc::new);
        Self { socket, watchdog_interval: beat.map(|usec| Duration::from_micros(usec / 2)) }
    }

    /// Sends that the program is ready.
    pub(crate) fn ready(&self) {
        self.notify("READY=1");
    }

    /// What sends that the program ends.
    pub(crate) fn notify_stopping_on_drop(&self) -> StoppingNotifier {
        StoppingNotifier(self.clone())
    }

    /// Sends watchdog notifications for as long as the agent answers.
    pub(crate) async fn watch_agent(self, agent: mpsc::Sender<AgentCommand>) {
        self.run_watchdog("supervisor", move || agent_answers(agent.clone())).await;
    }

    /// Sends watchdog notifications for as long as a task answers in time.
    pub(crate) async fn run_watchdog<F>(self, task: &'static str, answers: impl Fn() -> F)
    where
        F: Future<Output = bool>,
    {
        let Some(beat) = self.watchdog_interval else { return std::future::pending().await };
        let mut beats = interval(beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            if timeout(beat, answers()).await == Ok(true) {
                self.notify("WATCHDOG=1");
            } else {
                tracing::error!(task, "main loop does not answer, systemd watchdog not notified");
            }
        }
    }

    fn notify(&self, what: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(what.as_bytes())
        {
            tracing::debug!(object = what, %error, "systemd not notified");
        }
    }
}

/// Sends that the program ends when it is dropped.
#[derive(Debug)]
pub(crate) struct StoppingNotifier(SystemdNotifier);

impl Drop for StoppingNotifier {
    fn drop(&mut self) {
        self.0.notify("STOPPING=1");
    }
}

async fn agent_answers(agent: mpsc::Sender<AgentCommand>) -> bool {
    let (tell, answer) = oneshot::channel();
    agent.send(AgentCommand::Ping(tell)).await.is_ok() && answer.await.is_ok()
}

/// A name that begins with `@` is not in the file system.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes().split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(Path::new(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> (tempfile::TempDir, UnixDatagram, SystemdNotifier) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let socket = Some(Arc::new(connect(path.as_os_str()).unwrap()));
        (
            directory,
            listener,
            SystemdNotifier { socket, watchdog_interval: Some(Duration::from_millis(10)) },
        )
    }

    fn received(listener: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let length = listener.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn systemd_is_notified_of_ready_and_stopping() {
        let (_directory, listener, systemd) = listener();
        systemd.ready();
        drop(systemd.notify_stopping_on_drop());
        assert_eq!([received(&listener), received(&listener)], ["READY=1", "STOPPING=1"]);
        SystemdNotifier::default().ready();
    }

    #[test]
    fn a_socket_may_have_an_abstract_name() {
        let name = format!("@oarsman-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name[1..]).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        connect(OsStr::new(&name)).unwrap().send(b"READY=1").unwrap();
        assert_eq!(received(&listener), "READY=1");
    }

    #[tokio::test]
    async fn the_watchdog_is_notified_only_while_the_agent_answers() {
        let (_directory, listener, systemd) = listener();
        let (agent, mut asked) = mpsc::channel(1);
        let answering = async {
            for _ in 0..2 {
                let Some(AgentCommand::Ping(who)) = asked.recv().await else { return };
                who.send(()).unwrap();
            }
            // An unanswered command keeps the next one waiting.
            let unanswered = asked.recv().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(unanswered);
        };
        tokio::select! {
            () = systemd.watch_agent(agent) => {}
            () = answering => {}
        }
        assert_eq!([received(&listener), received(&listener)], ["WATCHDOG=1", "WATCHDOG=1"]);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.recv(&mut [0; 64]).is_err(), "it was fed without an answer");
    }
}
