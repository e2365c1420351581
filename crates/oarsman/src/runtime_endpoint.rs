//! Which container runtime an agent uses: the embedded one, or one that listens at a socket.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// The name of the embedded runtime among endpoints.
const EMBEDDED: &str = "embedded";
/// The directory of the embedded runtime below the root directory of its agent.
const EMBEDDED_DIRECTORY: &str = "runtime";

/// The runtime of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeEndpoint {
    /// The one in this program.
    Embedded,
    /// One that listens at a socket, given as a path or as `unix://` and a path.
    Socket(String),
}

impl RuntimeEndpoint {
    /// The endpoint of a configuration: `embedded`, or any other text as the address of a socket.
    pub(crate) fn of_configuration(text: &str) -> Self {
        if text == EMBEDDED { Self::Embedded } else { Self::Socket(text.to_owned()) }
    }

    /// The path of its socket.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Embedded => None,
            Self::Socket(address) => Some(socket_path(address)),
        }
    }
}

impl fmt::Display for RuntimeEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => out.write_str(EMBEDDED),
            Self::Socket(address) => out.write_str(address),
        }
    }
}

/// Where the embedded runtime of an agent with that root directory has its state.
pub(crate) fn embedded_directory(root: &Path) -> PathBuf {
    root.join(EMBEDDED_DIRECTORY)
}

/// What a person names by `--runtime`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedRuntime {
    /// The one in this program.
    Embedded,
    /// The one of that kind that listens at a default socket.
    OfKind(RemoteRuntimeKind),
    /// The one that listens there.
    Socket(String),
}

impl FromStr for NamedRuntime {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let kind = RemoteRuntimeKind::ALL.into_iter().find(|kind| kind.name() == text);
        Ok(match (RuntimeEndpoint::of_configuration(text), kind) {
            (_, Some(kind)) => Self::OfKind(kind),
            (RuntimeEndpoint::Embedded, None) => Self::Embedded,
            (RuntimeEndpoint::Socket(address), None) => Self::Socket(address),
        })
    }
}

impl NamedRuntime {
    /// The endpoint, if a process listens there.
    pub(crate) fn find(&self) -> Result<RuntimeEndpoint, NoRuntime> {
        match self {
            Self::Embedded => Ok(RuntimeEndpoint::Embedded),
            Self::OfKind(kind) => kind.find().ok_or(NoRuntime::OfKind(*kind)),
            Self::Socket(address) => match listens(address) {
                Ok(()) => Ok(RuntimeEndpoint::Socket(address.clone())),
                Err(source) => Err(NoRuntime::Silent { address: address.clone(), source }),
            },
        }
    }
}

/// Why no runtime is at what was named.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRuntime {
    /// No process listens at any default socket of the kind.
    #[error(
        "no {} was found (looked at {}): start it, name its socket with --runtime, or leave --runtime out for the embedded runtime",
        .0.name(),
        .0.default_sockets().join(", ")
    )]
    OfKind(RemoteRuntimeKind),
    /// No process listens at the socket.
    #[error("no runtime listens at {}: start it, or name another with --runtime", socket_path(.address).display())]
    Silent {
        /// The socket as it was named.
        address: String,
        /// What the kernel says.
        source: io::Error,
    },
}

/// Runtimes with sockets of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteRuntimeKind {
    Containerd,
    CriO,
}

impl RemoteRuntimeKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 2] = [Self::Containerd, Self::CriO];

    /// The name of its program.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::CriO => "crio",
        }
    }

    /// Where it listens unless it is configured otherwise.
    pub(crate) const fn default_sockets(self) -> &'static [&'static str] {
        match self {
            Self::Containerd => &[
                "/run/containerd/containerd.sock",
                "/run/k3s/containerd/containerd.sock",
                "/var/snap/microk8s/common/run/containerd.sock",
            ],
            Self::CriO => &["/run/crio/crio.sock"],
        }
    }

    /// The endpoint of the first that listens at one of its default sockets.
    pub(crate) fn find(self) -> Option<RuntimeEndpoint> {
        listening(self.default_sockets()).next()
    }
}

/// The runtimes of any kind that listen at default sockets.
pub(crate) fn all_remote() -> impl Iterator<Item = RuntimeEndpoint> {
    RemoteRuntimeKind::ALL.into_iter().flat_map(|kind| listening(kind.default_sockets()))
}

fn listening(sockets: &'static [&'static str]) -> impl Iterator<Item = RuntimeEndpoint> {
    let there = sockets.iter().filter(|socket| listens(socket).is_ok());
    there.map(|socket| RuntimeEndpoint::Socket(format!("unix://{socket}")))
}

/// Whether a process listens at an endpoint, given as a path or as `unix://` and a path.
pub(crate) fn listens(address: &str) -> io::Result<()> {
    UnixStream::connect(socket_path(address)).map(drop)
}

fn socket_path(address: &str) -> &Path {
    Path::new(address.strip_prefix("unix://").unwrap_or(address))
}
