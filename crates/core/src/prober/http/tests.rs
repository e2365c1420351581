//! Requests, redirects and answers, row by row.

use k8s_openapi::api::core::v1::HTTPHeader;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;

fn first(headers: &[(&str, &str)]) -> HttpRequest {
    let header = |(name, value): &(&str, &str)| HTTPHeader {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    let action = HTTPGetAction {
        port: IntOrString::Int(8080),
        path: Some("/a/b?c=1".to_owned()),
        http_headers: Some(headers.iter().map(header).collect()),
        ..HTTPGetAction::default()
    };
    let endpoint = ContainerEndpoint::new(Vec::new(), Some("10.0.0.7".to_owned()));
    request(&action, &endpoint).unwrap()
}

fn judged(status: u16, location: Option<&str>) -> HttpStep {
    let asked = first(&[]);
    let answer = HttpAnswer { status, location, body: b"body" };
    HttpProbe::new(&asked).judge(&asked, &answer)
}

#[test]
fn a_probe_says_who_asks_and_closes_its_connection() {
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let agent = ("User-Agent", "kube-probe/1.36");
    let (any, close) = (("Accept", "*/*"), ("Connection", "close"));
    let rows: [(Headers<'_>, Headers<'_>); 5] = [
        (&[], &[agent, any, close]),
        (&[("User-Agent", "me")], &[("User-Agent", "me"), any, close]),
        (&[("Accept", "")], &[agent, close]),
        (&[("Host", "web")], &[("Host", "web"), agent, any, close]),
        (&[("connection", "keep-alive")], &[agent, any, close]),
    ];
    for (given, expected) in rows {
        let headers = first(given).headers;
        let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(headers, expected);
    }
    let request = first(&[]);
    let target = (request.host.as_str(), request.port, request.path_and_query.as_str());
    assert_eq!(target, ("10.0.0.7", 8080, "/a/b?c=1"), "the pod's address by default");
}

#[test]
fn statuses_from_200_to_399_are_successes() {
    for status in [200, 204, 299] {
        assert_eq!(judged(status, None), HttpStep::Done(ProbeOutcome::success("body")), "{status}");
    }
    for status in [300, 301, 304, 399] {
        let told = "Probe terminated redirects, Response body: body";
        assert_eq!(judged(status, None), HttpStep::Done(ProbeOutcome::warning(told)), "{status}");
    }
    for status in [100, 199, 400, 404, 500, 599] {
        let told = format!("HTTP probe failed with statuscode: {status}");
        assert_eq!(judged(status, None), HttpStep::Done(ProbeOutcome::failure(told)), "{status}");
    }
}

#[test]
fn redirects_on_the_same_host_are_followed() {
    let rows = [
        ("/x", "http://10.0.0.7:8080/x"),
        ("x", "http://10.0.0.7:8080/a/x"),
        ("../x?y", "http://10.0.0.7:8080/x?y"),
        ("..", "http://10.0.0.7:8080/"),
        ("./", "http://10.0.0.7:8080/a/"),
        ("?y", "http://10.0.0.7:8080/a/b?y"),
        ("http://10.0.0.7/x", "http://10.0.0.7:80/x"),
        ("https://10.0.0.7", "https://10.0.0.7:443/"),
        ("HTTPS://10.0.0.7:9/x#y", "https://10.0.0.7:9/x"),
        ("//10.0.0.7:81/x y", "http://10.0.0.7:81/x%20y"),
        ("http://me:secret@10.0.0.7/", "http://10.0.0.7:80/"),
    ];
    for (location, expected) in rows {
        let HttpStep::Follow(next) = judged(302, Some(location)) else {
            panic!("{location} is not followed")
        };
        let HttpRequest { tls, host, port, path_and_query, .. } = next;
        let scheme = if tls { "https" } else { "http" };
        assert_eq!(format!("{scheme}://{host}:{port}{path_and_query}"), expected, "{location}");
    }
}

#[test]
fn a_redirect_to_another_host_is_not_followed_and_is_a_success_with_a_warning() {
    let rows = [
        Some("http://10.0.0.8:8080/"),
        Some("http://localhost:10248/healthz"),
        Some("https://[fd00::1]/"),
        Some("//node/"),
        Some("http://"),
        Some("http://10.0.0.7:no/"),
        Some("ftp://10.0.0.7/"),
        Some("mailto:me"),
        None,
    ];
    for location in rows {
        let told = "Probe terminated redirects, Response body: body";
        let expected = HttpStep::Done(ProbeOutcome::warning(told));
        assert_eq!(judged(302, location), expected, "{location:?}");
    }
}

#[test]
fn the_eleventh_redirect_is_a_failure() {
    let mut asked = first(&[]);
    let mut probe = HttpProbe::new(&asked);
    let answer = HttpAnswer { status: 307, location: Some("/again"), body: b"" };
    for _ in 0..10 {
        let HttpStep::Follow(next) = probe.judge(&asked, &answer) else { panic!("not followed") };
        asked = next;
    }
    let stopped = HttpStep::Done(ProbeOutcome::failure("stopped after 10 redirects"));
    assert_eq!(probe.judge(&asked, &answer), stopped);
}

#[test]
fn a_host_header_is_kept_unless_the_redirect_names_a_host() {
    let asked = first(&[("Host", "web")]);
    let hosts = |location| {
        let answer = HttpAnswer { status: 302, location: Some(location), body: b"" };
        match HttpProbe::new(&asked).judge(&asked, &answer) {
            HttpStep::Follow(next) => {
                next.headers.into_iter().filter(|(name, _)| name == "Host").count()
            }
            HttpStep::Done(outcome) => panic!("{outcome:?}"),
        }
    };
    assert_eq!(hosts("/x"), 1);
    assert_eq!(hosts("http://10.0.0.7:8080/x"), 0);
}
