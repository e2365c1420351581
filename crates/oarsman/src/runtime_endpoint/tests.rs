//! Names and addresses of runtimes.

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

#[test]
fn a_runtime_is_named_by_a_word_or_by_its_socket() {
    let socket = |address: &str| NamedRuntime::Socket(address.to_owned());
    for (text, wanted) in [
        ("embedded", NamedRuntime::Embedded),
        ("containerd", NamedRuntime::OfKind(RemoteRuntimeKind::Containerd)),
        ("crio", NamedRuntime::OfKind(RemoteRuntimeKind::CriO)),
        (
            "unix:///run/containerd/containerd.sock",
            socket("unix:///run/containerd/containerd.sock"),
        ),
        ("/run/embedded", socket("/run/embedded")),
        ("docker", socket("docker")),
    ] {
        assert_eq!(text.parse::<NamedRuntime>().unwrap(), wanted, "{text}");
    }
}

#[test]
fn a_runtime_that_is_named_must_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("r.sock").display().to_string();
    let named = NamedRuntime::Socket(format!("unix://{socket}"));
    let refused = named.find().unwrap_err().to_string();
    assert!(refused.starts_with(&format!("no runtime listens at {socket}: start it")), "{refused}");
    let _listener = UnixListener::bind(&socket).unwrap();
    for address in [format!("unix://{socket}"), socket] {
        let found = NamedRuntime::Socket(address.clone()).find().unwrap();
        assert_eq!(found, RuntimeEndpoint::Socket(address));
    }
    assert_eq!(NamedRuntime::Embedded.find().unwrap(), RuntimeEndpoint::Embedded);
    let refused = NoRuntime::OfKind(RemoteRuntimeKind::CriO).to_string();
    assert!(refused.contains("no crio was found (looked at /run/crio/crio.sock)"), "{refused}");
}

#[test]
fn a_configuration_names_the_embedded_runtime_or_a_socket() {
    for (text, path) in
        [("embedded", None), ("unix:///r.sock", Some("/r.sock")), ("/r.sock", Some("/r.sock"))]
    {
        let endpoint = RuntimeEndpoint::of_configuration(text);
        assert_eq!(endpoint.socket(), path.map(Path::new), "{text}");
        assert_eq!(endpoint.to_string(), text);
    }
}
