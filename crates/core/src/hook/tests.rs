//! What an HTTP hook's spec comes to, row by row.

use k8s_openapi::api::core::v1::HTTPHeader;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;

fn action(port: IntOrString) -> HTTPGetAction {
    HTTPGetAction { port, ..HTTPGetAction::default() }
}

fn asked(action: &HTTPGetAction) -> HttpRequest {
    let container = ContainerEndpoint::new(Vec::new(), Some("10.0.0.7".to_owned()));
    HttpRequest::of(action, &container).unwrap()
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
fn headers_are_those_of_the_hook_and_the_user_agent() {
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
