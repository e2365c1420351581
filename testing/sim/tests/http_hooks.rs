//! Hooks that send an HTTP request, by the world's trace.

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, HTTPGetAction, HTTPHeader, LifecycleHandler,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use oarsman_core::event::EventKind;
use oarsman_net::{HttpGet, Scheme, Trust};
use oarsman_sim::scenario::{
    CREATED_AT, ScenarioLog, container, delete, events_with_reason, pod, run_pod, start_failures,
    with_post_start, with_pre_stop,
};
use oarsman_sim::{ExternalAction, SimulationResult};
use oarsman_world::network::{FakeResponse, FakeServer, ServerProtocol};

const FOREVER: &[&str] = &["forever"];
/// The script of a container that listens on a port.
const SERVES: &[&str] = &["listen:8080", "forever"];

fn get(port: IntOrString) -> HTTPGetAction {
    HTTPGetAction { port, path: Some("/bye?now".to_owned()), ..HTTPGetAction::default() }
}

/// A request to the server `web`.
fn web(scheme: &str) -> HTTPGetAction {
    let (host, scheme) = (Some("web".to_owned()), Some(scheme.to_owned()));
    HTTPGetAction { host, scheme, ..get(IntOrString::Int(80)) }
}

fn hook(action: HTTPGetAction) -> LifecycleHandler {
    LifecycleHandler { http_get: Some(action), ..LifecycleHandler::default() }
}

fn serve(server: FakeServer) -> ExternalAction {
    ExternalAction::StartServer { host: "web".to_owned(), port: 80, server }
}

/// The simulation of a pod with that preStop hook, which is deleted after a minute.
fn stopped(container: Container, action: HTTPGetAction, server: FakeServer) -> SimulationResult {
    let hooked = with_pre_stop(container, hook(action));
    let actions = [(30, serve(server)), (60, delete(None))];
    run_pod(pod(vec![], vec![hooked], 30), &actions).unwrap_or_else(|error| panic!("{error}"))
}

fn asked(result: &SimulationResult) -> &HttpGet {
    assert_eq!(result.asked.len(), 1, "{:?}", result.asked);
    &result.asked[0]
}

/// The same with a name for the port that it listens on.
fn named(container: Container) -> Container {
    let port = ContainerPort {
        name: Some("admin".to_owned()),
        container_port: 8080,
        ..ContainerPort::default()
    };
    Container { ports: Some(vec![port]), ..container }
}

#[test]
fn the_pod_itself_is_asked_on_a_port_that_it_has() {
    let text = |text: &str| IntOrString::String(text.to_owned());
    for port in [IntOrString::Int(8080), text("admin"), text("8080")] {
        let result = stopped(
            named(container("a", SERVES)),
            get(port),
            FakeServer::new(ServerProtocol::Http),
        );
        let request = asked(&result);
        let ip = result.statuses.iter().find_map(|said| said.status.pod_ip.clone());
        assert_eq!((Some(&request.host), request.port), (ip.as_ref(), 8080));
        assert_eq!((request.scheme, request.trust), (Scheme::Http, Trust::AnyCertificate));
        assert_eq!(request.path_and_query, "/bye?now");
        let headers = [("User-Agent", "kube-lifecycle/1.36"), ("Accept", "*/*")];
        assert_eq!(request.headers, headers.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert_eq!(ScenarioLog::of(&result).when("StopContainer a#0 30s"), Some(60));
        assert_eq!(events_with_reason(&result, "FailedPreStopHook"), []);
    }
}

#[test]
fn the_hooks_own_headers_are_sent() {
    let header = |name: &str, value: &str| HTTPHeader { name: name.into(), value: value.into() };
    let headers = vec![header("Host", "example.org"), header("User-Agent", "me")];
    let action = HTTPGetAction { http_headers: Some(headers), ..web("HTTP") };
    let result = stopped(container("a", FOREVER), action, FakeServer::new(ServerProtocol::Http));
    let expected = [("Host", "example.org"), ("User-Agent", "me"), ("Accept", "*/*")];
    assert_eq!(asked(&result).headers, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
}

#[test]
fn any_http_status_counts_as_success() {
    for status in [200, 302, 404, 500] {
        let page = FakeResponse::new(status, "a word").after(Duration::from_secs(4));
        let server = FakeServer::new(ServerProtocol::Http).with("/bye?now", page);
        let result = stopped(container("a", FOREVER), web("HTTP"), server);
        assert_eq!(asked(&result).host, "web");
        assert_eq!(ScenarioLog::of(&result).when("StopContainer a#0 26s"), Some(64), "{status}");
        assert_eq!(events_with_reason(&result, "FailedPreStopHook"), [], "{status}");
    }
}

#[test]
fn server_certificates_are_not_verified() {
    for protocol in [ServerProtocol::Https, ServerProtocol::SelfSigned] {
        let result = stopped(container("a", FOREVER), web("HTTPS"), FakeServer::new(protocol));
        assert_eq!(asked(&result).scheme, Scheme::Https);
        assert_eq!(events_with_reason(&result, "FailedPreStopHook"), []);
        assert_eq!(events_with_reason(&result, "LifecycleHTTPFallback"), []);
    }
}

#[test]
fn a_server_without_tls_is_asked_over_http_with_an_event() {
    let header = HTTPHeader { name: "Authorization".into(), value: "Basic c2VjcmV0".into() };
    let action = HTTPGetAction { http_headers: Some(vec![header]), ..web("HTTPS") };
    let result = stopped(container("a", FOREVER), action, FakeServer::new(ServerProtocol::Http));
    let request = asked(&result);
    assert_eq!((request.scheme, request.port), (Scheme::Http, 80));
    assert!(!request.headers.iter().any(|(name, _)| name == "Authorization"), "{request:?}");
    assert_eq!(events_with_reason(&result, "FailedPreStopHook"), []);
    let fallback = events_with_reason(&result, "LifecycleHTTPFallback");
    assert_eq!((fallback.len(), fallback[0].0, fallback[0].1.kind), (1, 60, EventKind::Warning));
    assert!(fallback[0].1.message.contains("web:80"), "{}", fallback[0].1.message);
}

#[test]
fn a_server_that_is_not_there_or_too_slow_is_a_failure() {
    let slow = FakeResponse::new(200, "").after(Duration::from_secs(300));
    let there = FakeServer::new(ServerProtocol::Http).with("/bye?now", slow);
    let elsewhere = || HTTPGetAction { host: Some("nowhere".to_owned()), ..web("HTTP") };
    let rows = [
        (elsewhere(), 60, "StopContainer a#0 30s"),
        (web("HTTP"), 90, "StopContainer a#0 2s"),
        // No process listens in the pod.
        (get(IntOrString::Int(8080)), 60, "StopContainer a#0 30s"),
        (get(IntOrString::String("admin".to_owned())), 60, "StopContainer a#0 30s"),
    ];
    for (action, at, stop) in rows {
        let result = stopped(container("a", FOREVER), action, there.clone());
        assert_eq!(ScenarioLog::of(&result).when(stop), Some(at), "{stop}");
        let warned = events_with_reason(&result, "FailedPreStopHook");
        assert_eq!((warned.len(), warned[0].0), (1, at), "{stop}");
    }
}

#[test]
fn after_a_start_a_server_is_asked_too_and_the_status_says_why_it_could_not_be() {
    let rows = [
        (IntOrString::Int(8081), "connection refused"),
        (IntOrString::String("admin".to_owned()), "has no port named \"admin\""),
        (IntOrString::Int(0), "port 0 is not between 1 and 65535"),
    ];
    for (port, why) in rows {
        let hooked = with_post_start(container("a", SERVES), hook(get(port)));
        let result = run_pod(pod(vec![], vec![hooked], 2), &[]).unwrap();
        let (_, reason, message) = start_failures(&result, "a")[0].clone();
        assert_eq!(reason, "PostStartHookError");
        assert!(message.contains(why), "{message} lacks {why}");
        assert!(!message.contains("now"), "a query may be secret: {message}");
    }
    let hooked = with_post_start(container("a", SERVES), hook(get(IntOrString::Int(8080))));
    let result = run_pod(pod(vec![], vec![hooked, container("b", FOREVER)], 2), &[]).unwrap();
    assert_eq!(ScenarioLog::of(&result).when("b#0 started"), Some(CREATED_AT));
    assert_eq!(asked(&result).port, 8080);
}

#[test]
fn a_pod_on_the_nodes_network_is_asked_at_the_nodes_address() {
    let hooked = with_post_start(container("a", FOREVER), hook(get(IntOrString::Int(80))));
    let mut pod = pod(vec![], vec![hooked], 2);
    pod.spec.get_or_insert_default().host_network = Some(true);
    let result = run_pod(pod, &[]).unwrap();
    let message = &start_failures(&result, "a")[0].2;
    assert!(message.contains("http://192.0.2.1:80/bye"), "{message}");
}

#[test]
fn an_orphans_port_is_found_by_what_is_written_on_its_container() {
    let admin = IntOrString::String("admin".to_owned());
    let hooked = with_pre_stop(named(container("a", SERVES)), hook(get(admin)));
    let gone = ExternalAction::WhileAgentDown(Box::new(delete(Some(0))));
    let result = run_pod(pod(vec![], vec![hooked], 30), &[(60, gone)]).unwrap();
    let ip = result.statuses.iter().find_map(|said| said.status.pod_ip.clone());
    let request = asked(&result);
    assert_eq!((Some(&request.host), request.port), (ip.as_ref(), 8080));
    assert_eq!(events_with_reason(&result, "FailedPreStopHook"), []);
}
