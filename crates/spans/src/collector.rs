//! The address of a collector, and the connection to it.

use std::ffi::OsString;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

/// Where collectors listen.
pub(crate) const DEFAULT_COLLECTOR: &str = "localhost:4317";
const DEFAULT_PORT: u16 = 4317;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// A collector that cannot be connected to by its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{value:?} is no address of a collector; write host:port, dns:///host:port, unix:///path or unix-abstract:name"
)]
pub struct InvalidCollector {
    value: String,
}

/// The names that gRPC has for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CollectorAddress {
    /// Host and port.
    Tcp(String),
    /// A path, or a name of the kernel's that begins with a zero byte.
    Unix(OsString),
}

/// A channel to the collector, without TLS as with the Go kubelet. It connects at the first call, and again after the connection broke.
pub(crate) fn channel(endpoint: &str) -> Result<Channel, InvalidCollector> {
    let invalid = || InvalidCollector { value: endpoint.to_owned() };
    match address(endpoint).ok_or_else(invalid)? {
        CollectorAddress::Tcp(host) => {
            let endpoint = Endpoint::from_shared(format!("http://{host}"));
            let endpoint = endpoint.map_err(|_| invalid())?;
            Ok(endpoint.connect_timeout(CONNECT_DEADLINE).connect_lazy())
        }
        CollectorAddress::Unix(path) => {
            let connector = tower::service_fn(move |_| {
                let path = path.clone();
                async move { UnixStream::connect(path).await.map(TokioIo::new) }
            });
            let endpoint = Endpoint::from_static("http://localhost");
            let endpoint = endpoint.connect_timeout(CONNECT_DEADLINE);
            Ok(endpoint.connect_with_connector_lazy(connector))
        }
    }
}

fn address(endpoint: &str) -> Option<CollectorAddress> {
    let unix = |name: &str| Some(CollectorAddress::Unix(name.into())).filter(|_| !name.is_empty());
    if let Some(path) = endpoint.strip_prefix("unix:") {
        return unix(path.strip_prefix("//").unwrap_or(path));
    }
    if let Some(name) = endpoint.strip_prefix("unix-abstract:") {
        let name = name.strip_prefix("//").unwrap_or(name);
        return unix(name).and_then(|_| unix(&format!("\0{name}")));
    }
    // Names are looked up as the machine is configured, also where a server is named for that.
    let host = match endpoint.strip_prefix("dns:") {
        Some(host) => host.rsplit('/').next()?,
        None => endpoint,
    };
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
        _ => (host, DEFAULT_PORT),
    };
    (!name.is_empty() && !name.contains('/'))
        .then(|| CollectorAddress::Tcp(format!("{name}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_the_names_that_grpc_has_for_it() {
        let tcp = |host: &str| Some(CollectorAddress::Tcp(host.to_owned()));
        let unix = |path: &str| Some(CollectorAddress::Unix(path.into()));
        let rows = [
            (DEFAULT_COLLECTOR, tcp("localhost:4317")),
            ("collector", tcp("collector:4317")),
            ("[::1]:1", tcp("[::1]:1")),
            ("[::1]", tcp("[::1]:4317")),
            ("dns:///collector:5", tcp("collector:5")),
            ("dns://192.0.2.53/collector:5", tcp("collector:5")),
            ("dns:collector:5", tcp("collector:5")),
            ("unix:///run/otel.sock", unix("/run/otel.sock")),
            ("unix:otel.sock", unix("otel.sock")),
            ("unix-abstract:otel", unix("\0otel")),
            ("unix:", None),
            ("unix-abstract:", None),
            ("collector:http", None),
            ("", None),
            (":4317", None),
            ("http://collector:4317", None),
        ];
        for (endpoint, expected) in rows {
            assert_eq!(address(endpoint), expected, "{endpoint:?}");
        }
    }
}
