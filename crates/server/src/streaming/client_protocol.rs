//! Which protocol a client wants to switch to.

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oarsman_streaming::channels::{ChannelProtocol, TUNNEL_PROTOCOL};
use oarsman_streaming::connect::STREAM_PROTOCOL;
use oarsman_streaming::relay::{
    ByteRelay, PortForwardRelay, Relay, RemoteCommandRelay, RemoteCommandStreams, TunnelRelay,
};
use oarsman_streaming::websocket;

use super::StreamingRefusal;

/// The subprotocols towards the runtime, when the client speaks another one.
const COMMAND_PROTOCOL: &str = "v4.channel.k8s.io";
const PORT_FORWARD_PROTOCOL: &str = "portforward.k8s.io";

/// What a client speaks after the upgrade.
#[derive(Debug)]
pub(super) enum ClientProtocol {
    /// SPDY/3.1, with the subprotocols that it offers.
    Spdy { offered: Vec<String> },
    /// Channels over WebSocket.
    Channels { key: String, protocol: ChannelProtocol, runtime_protocol: &'static str },
    /// A port-forward over SPDY in messages of a WebSocket.
    Tunnel { key: String },
}

impl ClientProtocol {
    /// Of a request for exec or attach.
    pub(super) fn of_command(request: &Request) -> Result<Self, StreamingRefusal> {
        let headers = request.headers();
        if !is_websocket(headers) {
            return spdy(headers);
        }
        let (key, offered) = (websocket_key(headers)?, list(headers, "sec-websocket-protocol"));
        let protocol = ChannelProtocol::of_command(&borrowed(&offered));
        let protocol = protocol.ok_or_else(|| unsupported(&offered))?;
        Ok(Self::Channels { key, protocol, runtime_protocol: COMMAND_PROTOCOL })
    }

    /// Of a request for port-forward.
    pub(super) fn of_port_forward(request: &Request) -> Result<Self, StreamingRefusal> {
        let headers = request.headers();
        if !is_websocket(headers) {
            return spdy(headers);
        }
        let (key, offered) = (websocket_key(headers)?, list(headers, "sec-websocket-protocol"));
        if offered.iter().any(|name| name == TUNNEL_PROTOCOL) {
            return Ok(Self::Tunnel { key });
        }
        let protocol = ChannelProtocol::of_port_forward(&borrowed(&offered));
        let protocol = protocol.ok_or_else(|| unsupported(&offered))?;
        Ok(Self::Channels { key, protocol, runtime_protocol: PORT_FORWARD_PROTOCOL })
    }

    /// Whether a client of port-forward names its ports in the query, rather than with each stream.
    pub(super) fn names_ports_in_query(&self) -> bool {
        matches!(self, Self::Channels { .. })
    }

    /// How logs call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Spdy { .. } => "SPDY/3.1",
            Self::Channels { protocol, .. } => protocol.name().unwrap_or("websocket"),
            Self::Tunnel { .. } => TUNNEL_PROTOCOL,
        }
    }

    /// The subprotocols that the runtime is offered.
    pub(super) fn runtime_protocols(&self) -> Vec<&str> {
        match self {
            Self::Spdy { offered } => borrowed(offered),
            Self::Channels { runtime_protocol, .. } => vec![runtime_protocol],
            Self::Tunnel { .. } => vec![PORT_FORWARD_PROTOCOL],
        }
    }

    pub(super) fn command_relay(&self, streams: RemoteCommandStreams) -> Box<dyn Relay> {
        match self {
            Self::Channels { protocol, .. } => {
                Box::new(RemoteCommandRelay::new(*protocol, streams))
            }
            Self::Spdy { .. } | Self::Tunnel { .. } => Box::new(ByteRelay),
        }
    }

    pub(super) fn port_forward_relay(
        &self,
        ports: Vec<u16>,
    ) -> Result<Box<dyn Relay>, StreamingRefusal> {
        Ok(match self {
            Self::Spdy { .. } => Box::new(ByteRelay),
            Self::Tunnel { .. } => Box::new(TunnelRelay::default()),
            Self::Channels { protocol, .. } => {
                let relay = PortForwardRelay::new(*protocol, ports);
                let many = || StreamingRefusal::bad_request("too many ports".to_owned());
                Box::new(relay.ok_or_else(many)?)
            }
        })
    }

    /// The answer by which the connection switches; `chosen` is the runtime's choice of the offered subprotocols.
    pub(super) fn switching(&self, chosen: Option<String>) -> Response {
        let mut headers = vec![(header::CONNECTION.as_str(), "Upgrade".to_owned())];
        match self {
            Self::Spdy { .. } => {
                headers.push((header::UPGRADE.as_str(), "SPDY/3.1".to_owned()));
                headers.extend(chosen.map(|chosen| (STREAM_PROTOCOL, chosen)));
            }
            Self::Channels { key, .. } | Self::Tunnel { key } => {
                headers.push((header::UPGRADE.as_str(), "websocket".to_owned()));
                headers.push(("sec-websocket-accept", websocket::accept_key(key)));
                headers
                    .extend(self.subprotocol().map(|it| ("sec-websocket-protocol", it.to_owned())));
            }
        }
        let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
        for (name, value) in headers {
            if let Ok(value) = value.parse() {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }

    fn subprotocol(&self) -> Option<&'static str> {
        match self {
            Self::Spdy { .. } => None,
            Self::Channels { protocol, .. } => protocol.name(),
            Self::Tunnel { .. } => Some(TUNNEL_PROTOCOL),
        }
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    is_upgrade(headers)
        && list(headers, "upgrade").iter().any(|it| it.eq_ignore_ascii_case("websocket"))
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    list(headers, "connection").iter().any(|it| it.eq_ignore_ascii_case("upgrade"))
}

fn spdy(headers: &HeaderMap) -> Result<ClientProtocol, StreamingRefusal> {
    let asks = list(headers, "upgrade").iter().any(|it| it.eq_ignore_ascii_case("SPDY/3.1"));
    if !(is_upgrade(headers) && asks) {
        let said = "unable to upgrade: missing upgrade headers in request";
        return Err(StreamingRefusal::bad_request(said.to_owned()));
    }
    Ok(ClientProtocol::Spdy { offered: list(headers, STREAM_PROTOCOL) })
}

fn websocket_key(headers: &HeaderMap) -> Result<String, StreamingRefusal> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if value("sec-websocket-version") != Some("13") {
        let said = "unable to upgrade: the version of WebSocket must be 13";
        return Err(StreamingRefusal::bad_request(said.to_owned()));
    }
    let key = value("sec-websocket-key").filter(|key| websocket::is_valid_key(key));
    key.map(str::to_owned).ok_or_else(|| {
        StreamingRefusal::bad_request("unable to upgrade: no valid Sec-WebSocket-Key".to_owned())
    })
}

fn unsupported(offered: &[String]) -> StreamingRefusal {
    let said = format!("unable to upgrade: no subprotocol of {} is supported", offered.join(", "));
    StreamingRefusal::bad_request(said)
}

/// The elements of a header's values, which may be several lines or one with commas.
fn list(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let elements = values.flat_map(|value| value.split(',')).map(str::trim);
    elements.filter(|element| !element.is_empty()).map(str::to_owned).collect()
}

fn borrowed(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}
