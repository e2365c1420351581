//! One relayed connection: connects to the runtime, switches the client's protocol, and relays until either side ends.

use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use hyper_util::rt::TokioIo;
use oarsman_core::ids::FullName;
use oarsman_cri::{CriError, StreamingEndpoint};
use oarsman_streaming::connect::{self, ConnectError, UpgradedStream};
use oarsman_streaming::relay::{self, Relay};
use tokio::time::Instant;

use super::StreamingRefusal;
use super::client_protocol::ClientProtocol;
use crate::accept::ByteStream;
use crate::connections::ConnectionHandle;
use crate::pod_quota::QuotaPermit;
use crate::server_metrics::RequestMeasurement;

/// What a session is about, for logs.
#[derive(Debug)]
pub(super) struct SessionTarget {
    pub(super) endpoint: &'static str,
    pub(super) pod: FullName,
    /// Empty for a port-forward.
    pub(super) container: String,
}

/// A connection that is to be relayed.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) target: SessionTarget,
    pub(super) protocol: ClientProtocol,
    pub(super) idle_timeout: Duration,
    pub(super) permit: QuotaPermit,
}

impl Session {
    /// Connects to what the runtime has found. The client's connection switches only if the runtime's has switched.
    pub(super) async fn begin(
        self,
        found: Result<StreamingEndpoint, CriError>,
        relay: Box<dyn Relay>,
        mut request: Request,
    ) -> Result<Response, StreamingRefusal> {
        let found = found.map_err(|error| StreamingRefusal::of_runtime(&error))?;
        let (runtime, stream_protocol) = self.connect(found).await?;
        let response = self.protocol.switching(stream_protocol);
        let client = hyper::upgrade::on(&mut request);
        if let Some(connection) = request.extensions().get::<ConnectionHandle>() {
            connection.leave_table();
        }
        let measurement = request.extensions().get::<RequestMeasurement>().cloned();
        // It ends with either side, when it is idle, or with the server's thread.
        tokio::spawn(async move {
            let _measurement = measurement;
            match client.await {
                Ok(client) => self.relay(TokioIo::new(client), runtime, relay).await,
                Err(error) => {
                    tracing::debug!(pod = %self.target.pod, %error, "streaming connection not upgraded");
                }
            }
        });
        Ok(response)
    }

    /// The runtime's end, and what it has chosen of the subprotocols that the client offers.
    async fn connect(
        &self,
        found: StreamingEndpoint,
    ) -> Result<(Box<dyn ByteStream>, Option<String>), StreamingRefusal> {
        let offered = self.protocol.runtime_protocols();
        match found {
            StreamingEndpoint::Url(url) => {
                let connected = connect::spdy_to_url(&url, &offered).await;
                let UpgradedStream { stream, stream_protocol } =
                    connected.map_err(|error| refusal(&error))?;
                Ok((Box::new(stream), stream_protocol))
            }
            StreamingEndpoint::Session(session) => {
                let spoken = session.purpose().subprotocol();
                if !offered.contains(&spoken) {
                    return Err(not_negotiated(&offered, spoken));
                }
                let stream = session.open().ok_or_else(|| {
                    let said = "the connection to the runtime was used before".to_owned();
                    StreamingRefusal(StatusCode::INTERNAL_SERVER_ERROR, said)
                })?;
                Ok((Box::new(stream), Some(spoken.to_owned())))
            }
        }
    }

    async fn relay(
        self,
        client: TokioIo<hyper::upgrade::Upgraded>,
        runtime: Box<dyn ByteStream>,
        relay: Box<dyn Relay>,
    ) {
        let SessionTarget { endpoint, pod, container } = &self.target;
        let (protocol, began) = (self.protocol.name(), Instant::now());
        tracing::info!(%pod, container, call = endpoint, detail = protocol, "streaming connection opened");
        let error = tokio::select! {
            report = relay::run(client, runtime, relay, self.idle_timeout) => {
                report.outcome.err().map(|error| error.to_string())
            }
            () = self.permit.revoked() => Some("other namespaces need connections".to_owned()),
        };
        let seconds = began.elapsed().as_secs();
        let error = error.unwrap_or_default();
        tracing::info!(%pod, container, call = endpoint, seconds, error, "streaming connection closed");
    }
}

/// In the words of other servers.
fn not_negotiated(offered: &[&str], spoken: &str) -> StreamingRefusal {
    let offered = offered.join(" ");
    let said = format!(
        "unable to upgrade: unable to negotiate protocol: client supports [{offered}], server accepts [{spoken}]"
    );
    StreamingRefusal(StatusCode::FORBIDDEN, said)
}

/// A refusal of the runtime is passed on, unless it is a redirect: nothing follows those.
fn refusal(error: &ConnectError) -> StreamingRefusal {
    let status = match error {
        ConnectError::Refused { status: status @ 400..=599, .. } => {
            StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY)
        }
        _ => StatusCode::BAD_GATEWAY,
    };
    StreamingRefusal(status, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_of_the_runtime_is_never_followed_and_its_refusals_are_passed_on() {
        let rows = [(301, 502), (302, 502), (307, 502), (101, 502), (404, 404), (500, 500)];
        for (status, passed_on) in rows {
            let endpoint = "127.0.0.1:1".to_owned();
            let refused = ConnectError::Refused { endpoint, status, message: "no".to_owned() };
            assert_eq!(refusal(&refused).0.as_u16(), passed_on, "{status}");
        }
    }
}
