//! What an HTTP hook's spec comes to, row by row.

use k8s_openapi::api::core::v1::HTTPHeader;

use super::*;

fn ports() -> Vec<ContainerPort> {
    let port = |name: &str, number| ContainerPort {
        name: Some(name.to_owned()),
        container_port: number,
        ..ContainerPort::default()
    };
    vec![port("web", 8080), port("90", 9090), ContainerPort::default()]
}

fn action(port: IntOrString) -> HTTPGetAction {
    HTTPGetAction { port, ..HTTPGetAction::default() }
}

fn asked(action: &HTTPGetAction) -> HttpRequest {
    HttpRequest::of(action, &ports(), Some("10.0.0.7")).unwrap()
}

#[test]
fn a_port_is_a_number_or_the_name_of_one_or_a_number_as_text() {
    let text = |text: &str| IntOrString::String(text.to_owned());
    let none = |name: &str| Err(RequestError::PortName { name: name.to_owned() });
    let rows = [
        (IntOrString::Int(80), Ok(80)),
        (IntOrString::Int(65_535), Ok(65_535)),
        (IntOrString::Int(0), Err(RequestError::PortNumber { number: 0 })),
        (IntOrString::Int(-1), Err(RequestError::PortNumber { number: -1 })),
        (IntOrString::Int(65_536), Err(RequestError::PortNumber { number: 65_536 })),
        (text("web"), Ok(8080)),
        (text("90"), Ok(9090)),
        (text("91"), Ok(91)),
        (text("0"), Err(RequestError::PortNumber { number: 0 })),
        (text("admin"), none("admin")),
        (text("WEB"), none("WEB")),
        (text(""), none("")),
    ];
    for (port, expected) in rows {
        assert_eq!(resolve_port(&port, &ports()), expected, "{port:?}");
    }
}

#[test]
fn a_hook_without_a_host_asks_the_pod() {
    let action = |host: Option<&str>| HTTPGetAction {
        host: host.map(ToOwned::to_owned),
        ..action(IntOrString::Int(80))
    };
    let rows = [
        (None, Some("10.0.0.7"), Ok("10.0.0.7")),
        (Some(""), Some("fd00::7"), Ok("fd00::7")),
        (Some("web"), Some("10.0.0.7"), Ok("web")),
        (Some("web"), None, Ok("web")),
        (None, None, Err(RequestError::NoAddress)),
    ];
    for (host, pod_ip, expected) in rows {
        let host = HttpRequest::of(&action(host), &[], pod_ip).map(|request| request.host);
        assert_eq!(host, expected.map(ToOwned::to_owned));
    }
}

#[test]
fn schemes_are_spelled_as_people_do() {
    let unknown = |scheme: &str| Err(RequestError::Scheme { scheme: scheme.to_owned() });
    let rows = [
        (None, Ok(false)),
        (Some("HTTP"), Ok(false)),
        (Some("http"), Ok(false)),
        (Some("HTTPS"), Ok(true)),
        (Some("ftp"), unknown("ftp")),
    ];
    for (scheme, expected) in rows {
        let scheme = scheme.map(ToOwned::to_owned);
        let action = HTTPGetAction { scheme, ..action(IntOrString::Int(80)) };
        assert_eq!(HttpRequest::of(&action, &[], Some("ip")).map(|asked| asked.tls), expected);
    }
}

#[test]
fn paths_fit_into_a_request_line() {
    let rows = [
        (None, "/"),
        (Some(""), "/"),
        (Some("stop"), "/stop"),
        (Some("/stop?now=1&why=a%20b"), "/stop?now=1&why=a%20b"),
        (Some("?now"), "/?now"),
        (Some("/a b\r\nHost: c#d"), "/a%20b%0D%0AHost:%20c"),
        (Some("/grün"), "/gr%C3%BCn"),
    ];
    for (path, expected) in rows {
        let path = path.map(ToOwned::to_owned);
        let action = HTTPGetAction { path, ..action(IntOrString::Int(80)) };
        assert_eq!(asked(&action).path_and_query, expected);
    }
}

#[test]
fn headers_are_the_hooks_own_and_say_who_asks() {
    let agent = ("User-Agent", USER_AGENT);
    let any = ("Accept", "*/*");
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let rows: [(Headers<'_>, Headers<'_>); 7] = [
        (&[], &[agent, any]),
        (&[("X-A", "1"), ("X-A", "2")], &[("X-A", "1"), ("X-A", "2"), agent, any]),
        (&[("user-agent", "me")], &[("user-agent", "me"), any]),
        (&[("accept", "text/html")], &[("accept", "text/html"), agent]),
        (&[("Accept", "")], &[agent]),
        (&[("host", "a"), ("Host", "b")], &[("host", "a"), agent, any]),
        (&[("Host", "")], &[agent, any]),
    ];
    for (given, expected) in rows {
        let header = |(name, value): &(&str, &str)| HTTPHeader {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        let http_headers = Some(given.iter().map(header).collect());
        let headers =
            asked(&HTTPGetAction { http_headers, ..action(IntOrString::Int(80)) }).headers;
        let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(headers, expected, "{given:?}");
    }
}

#[test]
fn credentials_do_not_go_over_a_wire_that_was_to_be_secret() {
    let headers = vec![("authorization".to_owned(), "x".to_owned()), ("X".into(), "y".into())];
    let request = HttpRequest { tls: true, headers, ..asked(&action(IntOrString::Int(80))) };
    let plain = request.clone().in_plain();
    assert_eq!(plain.headers, [("X".to_owned(), "y".to_owned())]);
    assert_eq!(HttpRequest { tls: true, headers: request.headers.clone(), ..plain }, request);
}
