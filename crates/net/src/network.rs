//! The seam to servers: manifests at a URL, hooks and probes of containers, over HTTP, TCP and gRPC.

use std::fmt;
use std::time::Duration;

use oarsman_seam::{Call, CallFault, SeamError, seam};

/// Asks servers: one connection a call, no proxy, no redirect followed.
#[seam]
pub trait Network: Send + Sync + 'static {
    /// Sends a GET request and reads the response within the request's timeout. A response of any status is a success.
    #[seam(object = request.url())]
    async fn get(&self, request: &HttpGet) -> Result<HttpResponse, NetworkError>;

    /// Opens a TCP connection within the timeout, and closes it.
    #[seam(object = request.url())]
    async fn connect(&self, request: &TcpConnect) -> Result<(), NetworkError>;

    /// Asks `grpc.health.v1.Health/Check`, without TLS, within the timeout. An error that the server sends is an answer.
    #[seam(object = request.url())]
    async fn check_health(&self, request: &GrpcCheck) -> Result<GrpcResponse, NetworkError>;
}

/// The TCP connection to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConnect {
    /// Name or address; an IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How long it may take, from looking up the name on.
    pub timeout: Duration,
}

/// A gRPC health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcCheck {
    /// Name or address; an IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The service that is asked for; empty for the server as a whole.
    pub service: String,
    /// Who asks; the name of the library is added.
    pub user_agent: String,
    /// How long it may take, from connecting to the answer.
    pub timeout: Duration,
}

/// What a gRPC server answered to a health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrpcResponse {
    /// The number of a `ServingStatus`; 1 is SERVING.
    Status(i32),
    /// The call ended with a gRPC status that is not OK.
    Error {
        /// Whether the server does not have the service `grpc.health.v1.Health`.
        is_unimplemented: bool,
        /// The server's message, with its code.
        message: String,
    },
}

/// The HTTP GET to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpGet {
    /// With TLS or without.
    pub scheme: Scheme,
    /// Name or address; an IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What follows host and port in the URL, from the slash on.
    pub path_and_query: String,
    /// Sent as they are, in this order. Without a `Host` among them, the one of the URL is sent.
    pub headers: Vec<(String, String)>,
    /// How long all of it may take, from looking up the name to the last byte of the body.
    pub timeout: Duration,
    /// How many bytes of the body are read at most.
    pub body_limit: usize,
    /// Which server certificates are accepted.
    pub trust: Trust,
}

/// With TLS or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https,
}

/// Whose certificates are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those that the machine's own authorities vouch for.
    System,
    /// Any certificate: nothing is checked.
    AnyCertificate,
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status, such as 200.
    pub status: u16,
    /// Names in lower case, in the order they came; values that are no text are left out.
    pub headers: Vec<(String, String)>,
    /// As much of the body as the limit allows.
    pub body: Vec<u8>,
    /// Whether that is all of it.
    pub is_complete: bool,
}

/// Why no answer came. URLs are named without credentials and without their query, which may hold some.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The connection was refused, the host is unreachable, or the connection broke.
    #[error("cannot reach {url}: {why}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// What the system said.
        why: String,
    },
    /// It takes too long.
    #[error("no answer from {url} within {limit:?}")]
    TimedOut {
        /// What was asked for.
        url: String,
        /// How long it was waited.
        limit: Duration,
    },
    /// The server's certificate is not believed, or the two find no common TLS.
    #[error("no TLS with {url}: {why}")]
    Tls {
        /// What was asked for.
        url: String,
        /// The error of the connection or of the parser.
        why: String,
    },
    /// The server speaks HTTP without TLS.
    #[error("{url} answered in plain HTTP: ask for http instead of https")]
    PlainHttp {
        /// What was asked for.
        url: String,
    },
    /// The body is longer than the caller can use; only [`HttpResponse::into_complete_body`] says so.
    #[error("what {url} answered is longer than {limit} bytes")]
    BodyTooLarge {
        /// What was asked for.
        url: String,
        /// The most there may be.
        limit: usize,
    },
    /// The question cannot be asked, or the answer is no HTTP.
    #[error("{url} and its answer are not understood: {why}")]
    Malformed {
        /// What was asked for.
        url: String,
        /// The error of the connection or of the parser.
        why: String,
    },
}

impl SeamError for NetworkError {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        let url = call.object.clone();
        match fault {
            CallFault::TimedOut(limit) => Self::TimedOut { url, limit },
            CallFault::Unavailable => Self::Unreachable { url, why: "no route to host".to_owned() },
            CallFault::Unknown | CallFault::Refused | CallFault::Busy(_) => {
                Self::Unreachable { url, why: "connection reset".to_owned() }
            }
        }
    }
}

impl HttpGet {
    /// Scheme, host, port and path: what logs and errors may show.
    pub fn url(&self) -> String {
        let path = self.path_and_query.split('?').next().unwrap_or_default();
        format!("{}://{}{path}", self.scheme, self.authority())
    }

    /// Host and port as in a URL.
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

impl TcpConnect {
    /// What logs and errors show.
    pub fn url(&self) -> String {
        format!("tcp://{}", authority(&self.host, self.port))
    }
}

impl GrpcCheck {
    /// What logs and errors show.
    pub fn url(&self) -> String {
        format!("grpc://{}", self.authority())
    }

    /// Host and port as in a URL.
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl HttpResponse {
    /// The body, unless it was cut.
    ///
    /// # Errors
    /// [`NetworkError::BodyTooLarge`] when there was more of it than the request allowed.
    pub fn into_complete_body(self, request: &HttpGet) -> Result<Vec<u8>, NetworkError> {
        if self.is_complete {
            return Ok(self.body);
        }
        Err(NetworkError::BodyTooLarge { url: request.url(), limit: request.body_limit })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(host: &str, path_and_query: &str) -> HttpGet {
        HttpGet {
            scheme: Scheme::Https,
            host: host.to_owned(),
            port: 8443,
            path_and_query: path_and_query.to_owned(),
            headers: Vec::new(),
            timeout: Duration::from_secs(1),
            body_limit: 3,
            trust: Trust::System,
        }
    }

    #[test]
    fn a_url_is_shown_without_its_query() {
        let rows = [
            ("web", "/pods", "https://web:8443/pods"),
            ("web", "/pods?token=secret", "https://web:8443/pods"),
            ("10.0.0.1", "/", "https://10.0.0.1:8443/"),
            ("fd00::1", "/", "https://[fd00::1]:8443/"),
        ];
        for (host, path, want) in rows {
            assert_eq!(get(host, path).url(), want);
        }
    }

    #[test]
    fn a_cut_body_is_not_complete() {
        let answer = |whole| HttpResponse {
            status: 200,
            headers: Vec::new(),
            body: b"abc".to_vec(),
            is_complete: whole,
        };
        let request = get("web", "/pods?token=secret");
        assert_eq!(answer(true).into_complete_body(&request).unwrap(), b"abc");
        let error = answer(false).into_complete_body(&request).unwrap_err();
        let want = "what https://web:8443/pods answered is longer than 3 bytes";
        assert_eq!(error.to_string(), want);
    }
}
