//! Requests and what has to be allowed for them.

use super::*;

#[test]
fn requests_are_judged_by_method_and_path() {
    let rows: [(&str, &str, &str, &[&str]); 26] = [
        ("GET", "/pods", "get", &["pods", "proxy"]),
        ("GET", "/pods/", "get", &["pods", "proxy"]),
        ("GET", "/podsandmore", "get", &["proxy"]),
        ("GET", "/runningpods/", "get", &["pods", "proxy"]),
        ("GET", "/healthz", "get", &["healthz", "proxy"]),
        ("GET", "/healthz/ping", "get", &["healthz", "proxy"]),
        ("GET", "/configz", "get", &["configz", "proxy"]),
        ("GET", "/stats/summary", "get", &["stats"]),
        ("POST", "/stats/summary", "create", &["stats"]),
        ("GET", "/metrics", "get", &["metrics"]),
        ("GET", "/metrics/cadvisor", "get", &["metrics"]),
        ("GET", "/logs/", "get", &["log"]),
        ("GET", "/containerLogs/ns/pod/c", "get", &["proxy"]),
        ("POST", "/exec/ns/pod/c", "create", &["proxy"]),
        ("GET", "/exec/ns/pod/c", "create", &["proxy"]),
        ("GET", "/attach/ns/pod/uid/c", "create", &["proxy"]),
        ("GET", "/portForward/ns/pod", "create", &["proxy"]),
        ("PUT", "/run/ns/pod/c", "create", &["proxy"]),
        ("GET", "/run", "create", &["proxy"]),
        ("GET", "/executions", "get", &["proxy"]),
        ("POST", "/checkpoint/ns/pod/c", "create", &["checkpoint"]),
        ("GET", "/statusz", "get", &["statusz"]),
        ("GET", "/flagz", "get", &["configz"]),
        ("PUT", "/debug/flags/v", "update", &["proxy"]),
        ("DELETE", "/x", "delete", &["proxy"]),
        ("HEAD", "/", "", &["proxy"]),
    ];
    for (method, path, verb, subresources) in rows {
        let want = Attributes { verb, subresources: subresources.to_vec() };
        assert_eq!(attributes(method, path), want, "{method} {path}");
    }
}

#[test]
fn a_forbidden_request_names_user_verb_and_subresources() {
    let said = attributes("GET", "/pods").forbidden(ANONYMOUS);
    let want =
        "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[pods proxy])";
    assert_eq!(said, want);
}
