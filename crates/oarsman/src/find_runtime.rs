//! Finds the socket of a container runtime when none is configured.

use std::io;
use std::os::unix::net::UnixStream;

/// The sockets of runtimes in their default configuration.
pub(crate) const DEFAULT_ENDPOINTS: [&str; 5] = [
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/cri-dockerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
];

/// The endpoint of the first runtime that listens at a default socket.
pub(crate) fn find_default() -> Option<String> {
    let there = DEFAULT_ENDPOINTS.iter().find(|socket| listens(socket).is_ok());
    there.map(|socket| format!("unix://{socket}"))
}

/// Whether a process listens at an endpoint, given as a path or as `unix://` and a path.
pub(crate) fn listens(endpoint: &str) -> io::Result<()> {
    UnixStream::connect(endpoint.strip_prefix("unix://").unwrap_or(endpoint)).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_listening_socket_is_found_by_path_and_by_url() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("r.sock").display().to_string();
        assert_eq!(listens(&socket).unwrap_err().kind(), io::ErrorKind::NotFound);
        let _listener = UnixListener::bind(&socket).unwrap();
        listens(&socket).unwrap();
        listens(&format!("unix://{socket}")).unwrap();
    }
}
