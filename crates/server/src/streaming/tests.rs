//! Which protocols clients may ask for, and how the answer switches to them.

use axum::body::Body;
use oarsman_streaming::channels::TUNNEL_PROTOCOL;

use super::*;

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

fn request(headers: &[(&str, &str)]) -> Request {
    let request = Request::builder().uri("/exec/default/web/c");
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Body::empty()).unwrap()
}

fn websocket(protocols: &[&str]) -> Request {
    let mut headers = vec![
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", KEY),
    ];
    headers.extend(protocols.iter().map(|protocol| ("sec-websocket-protocol", *protocol)));
    request(&headers)
}

#[test]
fn every_protocol_that_clients_offer_is_understood() {
    let rows: [(&[&str], Option<&str>, Option<&str>); 6] = [
        (&["v5.channel.k8s.io"], Some("v5.channel.k8s.io"), None),
        (&["v4.channel.k8s.io"], Some("v4.channel.k8s.io"), Some("v4.channel.k8s.io")),
        (&["base64.channel.k8s.io, channel.k8s.io"], Some("base64.channel.k8s.io"), None),
        (&[], Some("websocket"), Some("websocket")),
        (&[TUNNEL_PROTOCOL], None, Some(TUNNEL_PROTOCOL)),
        (&["v9.channel.k8s.io"], None, None),
    ];
    for (offered, command, forward) in rows {
        let asked = websocket(offered);
        let found = ClientProtocol::of_command(&asked).ok();
        assert_eq!(found.map(|it| it.name()), command, "{offered:?}");
        let found = ClientProtocol::of_port_forward(&asked).ok();
        assert_eq!(found.map(|it| it.name()), forward, "{offered:?}");
    }
    let asked = request(&[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")]);
    assert_eq!(ClientProtocol::of_command(&asked).unwrap().name(), "SPDY/3.1");
}

#[test]
fn a_request_without_an_upgrade_or_with_half_of_one_is_refused() {
    let rows: [&[(&str, &str)]; 6] = [
        &[],
        &[("upgrade", "SPDY/3.1")],
        &[("connection", "Upgrade")],
        &[("connection", "Upgrade"), ("upgrade", "SPDY/2")],
        &[("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-key", KEY)],
        &[("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")],
    ];
    for headers in rows {
        let refused = ClientProtocol::of_command(&request(headers)).unwrap_err();
        assert_eq!(refused.0, StatusCode::BAD_REQUEST, "{headers:?}");
    }
}

#[test]
fn the_answer_names_what_was_chosen() {
    let header = |response: &Response, name: &str| {
        response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let response = ClientProtocol::of_command(&websocket(&["v5.channel.k8s.io"])).unwrap();
    let response = response.switching(Some("v4.channel.k8s.io".to_owned()));
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let accept = header(&response, "sec-websocket-accept");
    assert_eq!(accept.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    let protocol = header(&response, "sec-websocket-protocol");
    assert_eq!(protocol.as_deref(), Some("v5.channel.k8s.io"));
    let asked = request(&[
        ("connection", "Upgrade"),
        ("upgrade", "SPDY/3.1"),
        ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ("x-stream-protocol-version", "v3.channel.k8s.io"),
    ]);
    let protocol = ClientProtocol::of_command(&asked).unwrap();
    assert_eq!(protocol.runtime_protocols(), ["v4.channel.k8s.io", "v3.channel.k8s.io"]);
    let response = protocol.switching(Some("v4.channel.k8s.io".to_owned()));
    assert_eq!(header(&response, "upgrade").as_deref(), Some("SPDY/3.1"));
    let chosen = header(&response, "x-stream-protocol-version");
    assert_eq!(chosen.as_deref(), Some("v4.channel.k8s.io"));
}
