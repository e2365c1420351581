//! Endpoints of runtimes, and connections to them.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

/// Holds a second handle on connections, so that they outlive a client that is killed. A runtime whose client vanishes gives up its calls in the
/// middle, and may lose what it had made by then.
pub trait ConnectionHolder: fmt::Debug + Send + Sync + 'static {
    /// Called with every new connection.
    fn hold(&self, connection: BorrowedFd<'_>);
}

/// An endpoint that is not a unix socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "runtime endpoint {value:?} is not a unix socket; \
     write unix:///absolute/path or /absolute/path"
)]
pub struct InvalidEndpoint {
    value: String,
}

/// A channel to the socket. It connects at the first call, and again after the connection broke.
pub(super) fn channel(
    endpoint: &str,
    holder: Option<Arc<dyn ConnectionHolder>>,
) -> Result<Channel, InvalidEndpoint> {
    let invalid = || InvalidEndpoint { value: endpoint.to_owned() };
    let path = socket_path(endpoint).ok_or_else(invalid)?.to_owned();
    // gRPC wants a host in each request; that of a socket is localhost by convention.
    let connector = tower::service_fn(move |_| connect(path.clone(), holder.clone()));
    Ok(Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector))
}

async fn connect(
    path: PathBuf,
    holder: Option<Arc<dyn ConnectionHolder>>,
) -> io::Result<TokioIo<UnixStream>> {
    let named = |error: io::Error| {
        let message = format!("cannot connect to {}: {error}", path.display());
        io::Error::new(error.kind(), message)
    };
    let connection = UnixStream::connect(&path).await.map_err(named)?;
    holder.iter().for_each(|holder| holder.hold(connection.as_fd()));
    Ok(TokioIo::new(connection))
}

fn socket_path(endpoint: &str) -> Option<&Path> {
    let path = endpoint.strip_prefix("unix://").unwrap_or(endpoint);
    (path.starts_with('/') && !path.ends_with('/')).then_some(Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_of_sockets_are_endpoints() {
        for (endpoint, path) in [
            ("unix:///run/c/c.sock", Some("/run/c/c.sock")),
            ("/run/c/c.sock", Some("/run/c/c.sock")),
            ("run/c/c.sock", None),
            ("unix://run/c/c.sock", None),
            ("tcp://127.0.0.1:1234", None),
            ("npipe:////./pipe/c", None),
            ("unix:///", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(socket_path(endpoint), path.map(Path::new), "{endpoint:?}");
        }
    }

    #[test]
    fn a_bad_endpoint_is_refused_with_its_value_and_the_fix() {
        let error = channel("tcp://1.2.3.4:5", None).unwrap_err().to_string();
        assert!(error.contains("\"tcp://1.2.3.4:5\""), "{error}");
        assert!(error.contains("unix:///absolute/path"), "{error}");
    }
}
