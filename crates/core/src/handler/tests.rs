//! What a handler's spec and the runtime's state of its pod come to, row by row.

use super::*;
use crate::fixture::{pod, view};

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

#[test]
fn a_port_is_a_number_or_the_name_of_one_or_a_number_as_text() {
    let text = |text: &str| IntOrString::String(text.to_owned());
    let none = |name: &str| Err(TargetError::PortName { name: name.to_owned() });
    let rows = [
        (IntOrString::Int(80), Ok(80)),
        (IntOrString::Int(65_535), Ok(65_535)),
        (IntOrString::Int(0), Err(TargetError::PortNumber { number: 0 })),
        (IntOrString::Int(-1), Err(TargetError::PortNumber { number: -1 })),
        (IntOrString::Int(65_536), Err(TargetError::PortNumber { number: 65_536 })),
        (text("web"), Ok(8080)),
        (text("90"), Ok(9090)),
        (text("91"), Ok(91)),
        (text("0"), Err(TargetError::PortNumber { number: 0 })),
        (text("admin"), none("admin")),
        (text("WEB"), none("WEB")),
        (text(""), none("")),
    ];
    let container = ContainerEndpoint::new(ports(), None);
    for (port, expected) in rows {
        assert_eq!(container.port(&port), expected, "{port:?}");
    }
}

#[test]
fn a_handler_without_a_host_means_the_pod() {
    let action = |host: Option<&str>| HTTPGetAction {
        host: host.map(ToOwned::to_owned),
        ..action(IntOrString::Int(80))
    };
    let rows = [
        (None, Some("10.0.0.7"), Ok("10.0.0.7")),
        (Some(""), Some("fd00::7"), Ok("fd00::7")),
        (Some("web"), Some("10.0.0.7"), Ok("web")),
        (Some("web"), None, Ok("web")),
        (None, None, Err(TargetError::NoAddress)),
    ];
    for (host, pod_ip, expected) in rows {
        let container = ContainerEndpoint::new(Vec::new(), pod_ip.map(ToOwned::to_owned));
        let http = container.http(&action(host)).map(|target| target.host);
        assert_eq!(http, expected.clone().map(ToOwned::to_owned));
        let host = host.map(ToOwned::to_owned);
        let tcp = container.tcp(&TCPSocketAction { host, port: IntOrString::Int(80) });
        assert_eq!(tcp.map(|target| target.host), expected.map(ToOwned::to_owned));
    }
}

#[test]
fn schemes_are_spelled_as_people_do() {
    let unknown = |scheme: &str| Err(TargetError::Scheme { scheme: scheme.to_owned() });
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
        let container = ContainerEndpoint::new(Vec::new(), Some("ip".to_owned()));
        assert_eq!(container.http(&action).map(|target| target.tls), expected);
    }
}

#[test]
fn a_grpc_handler_means_a_port_of_the_pod() {
    let action = |port| GRPCAction { port, ..GRPCAction::default() };
    let container = ContainerEndpoint::new(Vec::new(), Some("10.0.0.7".to_owned()));
    let target = container.grpc(&action(9000)).unwrap();
    assert_eq!((target.host.as_str(), target.port), ("10.0.0.7", 9000));
    assert_eq!(container.grpc(&action(0)), Err(TargetError::PortNumber { number: 0 }));
    let nowhere = ContainerEndpoint::default();
    assert_eq!(nowhere.grpc(&action(9000)), Err(TargetError::NoAddress));
}

#[test]
fn a_container_has_the_address_of_its_sandbox_and_the_ports_of_its_spec() {
    let wanted = pod().regular_with("app", |app| app.ports = Some(ports())).build();
    let seen = view(&wanted)
        .sandbox()
        .edit_sandbox(|sandbox| sandbox.ips = vec!["10.0.0.7".to_owned()])
        .running("app")
        .edit_container(|app| app.label.ports = ports()[..1].to_vec())
        .build();
    let id = seen.containers[0].id.clone();
    let address = Some("10.0.0.7".to_owned());
    let of = |pod, view: &PodView, id: &ContainerId| {
        ContainerEndpoint::of(pod, view, "app", id, || Some("192.0.2.1".to_owned()))
    };
    let whole = ContainerEndpoint::new(ports(), address.clone());
    assert_eq!(of(Some(&wanted), &seen, &id), whole);
    assert_eq!(of(Some(&wanted), &seen, &"new".into()), whole, "just created: the newest sandbox");
    let labelled = ContainerEndpoint::new(ports()[..1].to_vec(), address);
    assert_eq!(of(None, &seen, &id), labelled, "an orphan has the ports it was created with");
    let mut on_host = seen.clone();
    on_host.sandboxes[0].host_network = true;
    let node = ContainerEndpoint::new(ports(), Some("192.0.2.1".to_owned()));
    assert_eq!(of(Some(&wanted), &on_host, &id), node);
    let empty = PodView { sandboxes: Vec::new(), ..seen };
    assert_eq!(of(Some(&wanted), &empty, &id), ContainerEndpoint::new(ports(), None));
}
