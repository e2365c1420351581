//! `oarsman cri`: the embedded runtime in a process of its own, which serves CRI at a socket for a kubelet, crictl or any other client.
//!
//! Containers are held by their shims: they go on when this process ends, however that happens, and the next one finds them again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use oarsman_clock::Clock;
use oarsman_cri::{Deadlines, RemoteRuntime, Runtime};
use oarsman_runtime::{EmbeddedRuntime, OciHandler};
use oarsman_sync::TaskPanics;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cri_server::CriServer;
use crate::logging::{LogLineFormat, LogSettings, RotationLimits, Verbosity};
use crate::runtime_endpoint::{RuntimeEndpoint, embedded_directory};
use crate::signals::ShutdownSignals;
use crate::socket_path::SocketPath;
use crate::systemd::SystemdNotifier;
use crate::{embedded_runtime, lock, machine, threads};

/// The default root directory. It is not that of `oarsman run`, so that both can be on one machine.
const ROOT: &str = "/var/lib/oarsman-cri";
/// The default socket.
const SOCKET: &str = "unix:///run/oarsman/cri.sock";
/// How long calls under way may go on after a termination signal. What a call has begun is found and ended by the next process.
const GRACE: Duration = Duration::from_millis(1200);
/// How long the removal of an unused network may take then.
const NETWORK_TIME: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  oarsman cri
  oarsman cri --listen unix:///run/cri.sock --root-dir /srv/cri
  crictl -r unix:///run/oarsman/cri.sock ps
  kubelet --container-runtime-endpoint unix:///run/oarsman/cri.sock";

/// Where the runtime is, and where it listens.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// The socket that clients connect to, for root only.
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    listen: String,
    /// Below which everything of this runtime lies; `oarsman image --root-dir` works on its images.
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    root_dir: PathBuf,
    /// A runtime handler beside the default one, by the path of its OCI runtime, such as `runc=/usr/sbin/runc`; for pods whose RuntimeClass names it.
    #[arg(long = "runtime-handler", value_name = "NAME=PATH")]
    handlers: Vec<OciHandler>,
    /// How much is logged: 4 and more for those who look for a fault.
    #[arg(long, short, default_value_t = 2)]
    v: u32,
    /// Where it is logged to, if not to stderr.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// What the lines of the log look like.
    #[arg(long, value_enum, default_value_t)]
    logging_format: LogLineFormat,
}

impl Flags {
    fn logging(&self) -> LogSettings {
        let file = self.log_file.clone().filter(|path| path != Path::new("-"));
        LogSettings {
            verbosity: Verbosity::of(self.v),
            format: self.logging_format,
            file: file.map(|path| (path, RotationLimits::default())),
        }
    }
}

/// Serves until a signal ends it. Containers stay.
pub(crate) fn run(flags: &Flags, clock: &Arc<dyn Clock>) -> Result<ExitCode> {
    let root = machine::canonical_root(&flags.root_dir)?;
    lock::prepare_root(&root)?;
    let mut names = BTreeSet::new();
    if let Some(twice) = flags.handlers.iter().find(|it| !names.insert(&it.name)) {
        bail!("--runtime-handler {}: there is one of that name already", twice.name);
    }
    let logging = flags.logging();
    let is_on_stderr = logging.file.is_none();
    let _log = logging.start(clock).context("cannot start the log")?;
    let Err(error) = threads::block_on(serve_until_signalled(flags, &root, clock)) else {
        return Ok(ExitCode::SUCCESS);
    };
    tracing::error!(
        task = "cri",
        error = format!("{error:#}"),
        "container runtime failed, exiting"
    );
    if is_on_stderr { Ok(ExitCode::FAILURE) } else { Err(error) }
}

async fn serve_until_signalled(flags: &Flags, root: &Path, clock: &Arc<dyn Clock>) -> Result<()> {
    let listen = flags.listen.as_str();
    let mut ending = ShutdownSignals::listen().context("cannot listen to signals")?;
    let (directory, panics) = (embedded_directory(root), TaskPanics::default());
    let runtime = tokio::select! {
        opened = embedded_runtime::open(&directory, &flags.handlers, clock, &panics) => opened?,
        () = ending.received() => return Ok(()),
    };
    // Only when the directory is ours: another process that has it may listen at the same socket.
    let socket = socket(listen)?;
    let server = CriServer::bind(socket, Arc::new(runtime.clone())).await?;
    tracing::info!(endpoint = listen, path = %directory.display(), "container runtime started");
    let served = serve(&server, listen, &mut ending).await;
    server.close();
    remove_unused_network(&runtime).await;
    served
}

async fn serve(server: &CriServer, listen: &str, ending: &mut ShutdownSignals) -> Result<()> {
    let end = CancellationToken::new();
    let mut serving = pin!(server.run(end.clone()));
    let client = RemoteRuntime::new(listen, None, Deadlines::default())?;
    let systemd = SystemdNotifier::of_environment();
    systemd.ready();
    let _stopping = systemd.notify_stopping_on_drop();
    let watchdog = systemd.run_watchdog("cri", || async { client.version().await.is_ok() });
    tokio::select! {
        served = &mut serving => return served,
        () = watchdog => {}
        () = ending.received() => {}
    }
    tracing::info!(task = "cri", "termination signal received, exiting, containers keep running");
    end.cancel();
    // A call that takes longer is cut off.
    timeout(GRACE, serving).await.unwrap_or(Ok(()))
}

async fn remove_unused_network(runtime: &EmbeddedRuntime) {
    if timeout(NETWORK_TIME, embedded_runtime::remove_unused_network(runtime)).await.is_err() {
        tracing::info!(
            object = "pod network",
            "network of pods not removed in time, the next start uses it"
        );
    }
}

/// The socket to listen at, in a directory that is made if it is missing.
fn socket(listen: &str) -> Result<SocketPath> {
    let endpoint = RuntimeEndpoint::Socket(listen.to_owned());
    let path = endpoint.socket().unwrap_or(Path::new(listen));
    let parts = path.parent().zip(path.file_name().and_then(OsStr::to_str));
    let parts = parts.filter(|_| path.is_absolute());
    let (directory, name) = parts.with_context(|| {
        format!("--listen {listen}: name a socket by an absolute path, as {SOCKET}")
    })?;
    lock::prepare_directory(directory)
        .with_context(|| format!("cannot use the directory of the socket {listen}"))?;
    refuse_others(path)?;
    SocketPath::of(directory, name).with_context(|| format!("cannot listen at {listen}"))
}

/// A socket at which no process listens is what a killed process has left.
fn refuse_others(path: &Path) -> Result<()> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot look at {shown}")),
        Ok(there) if !there.file_type().is_socket() => {
            bail!("{shown} is no socket: remove it, or name another one with --listen")
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            bail!("a process listens at {shown}: stop it, or name another socket with --listen")
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_of_another_process_and_a_file_are_left_alone_and_that_of_a_dead_process_is_replaced()
     {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| format!("unix://{}", scratch.path().join(name).display());
        let listener = UnixListener::bind(scratch.path().join("live")).unwrap();
        let refused = format!("{:#}", socket(&place("live")).unwrap_err());
        assert!(refused.contains("a process listens at"), "{refused}");
        drop(listener);
        socket(&place("live")).unwrap().listen().unwrap();
        fs::write(scratch.path().join("file"), "kept").unwrap();
        let refused = format!("{:#}", socket(&place("file")).unwrap_err());
        assert!(refused.contains("is no socket"), "{refused}");
        assert_eq!(fs::read(scratch.path().join("file")).unwrap(), b"kept");
    }

    #[test]
    fn a_socket_has_an_absolute_path_and_its_directory_is_made() {
        let scratch = tempfile::tempdir().unwrap();
        for wrong in ["unix://cri.sock", "cri.sock", "unix://", "/"] {
            assert!(socket(wrong).is_err(), "{wrong}");
        }
        let path = scratch.path().join("a/b/cri.sock");
        let _listener = socket(&path.display().to_string()).unwrap().listen().unwrap();
        UnixStream::connect(path).unwrap();
    }
}
