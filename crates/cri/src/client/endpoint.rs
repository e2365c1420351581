//! Where a runtime listens, and how to get there.

use std::io;
use std::path::{Path, PathBuf};

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

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
pub(super) fn channel(endpoint: &str) -> Result<Channel, InvalidEndpoint> {
    let invalid = || InvalidEndpoint { value: endpoint.to_owned() };
    let path = socket_path(endpoint).ok_or_else(invalid)?.to_owned();
    // gRPC wants a host in each request; that of a socket is localhost by convention.
    let connector = tower::service_fn(move |_| connect(path.clone()));
    Ok(Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector))
}

async fn connect(path: PathBuf) -> io::Result<TokioIo<UnixStream>> {
    let named = |error: io::Error| {
        let message = format!("cannot connect to {}: {error}", path.display());
        io::Error::new(error.kind(), message)
    };
    UnixStream::connect(&path).await.map(TokioIo::new).map_err(named)
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
        let error = channel("tcp://1.2.3.4:5").unwrap_err().to_string();
        assert!(error.contains("\"tcp://1.2.3.4:5\""), "{error}");
        assert!(error.contains("unix:///absolute/path"), "{error}");
    }
}
