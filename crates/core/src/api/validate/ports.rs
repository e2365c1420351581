//! Ports of containers and of the host.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerPort, PodSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::names;
use crate::api::error::Errors;
use crate::api::path::Path;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn check(at: &Path, ports: Option<&[ContainerPort]>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, port) in ports.into_iter().flatten().enumerate() {
        let at = at.index(i);
        if let Some(name) = &port.name {
            check_name(&at.child("name"), name, &mut seen, errors);
        }
        check_numbers(&at, port, errors);
        let protocol = port.protocol.as_deref().unwrap_or_default();
        errors.check_choice(&at.child("protocol"), protocol, &PROTOCOLS);
    }
}

fn check_name<'a>(at: &Path, name: &'a str, seen: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    let complaints = names::port_name(name);
    if !complaints.is_empty() {
        errors.invalid_for(at, name, complaints);
    } else if !seen.insert(name) {
        errors.duplicate(at, name);
    }
}

fn check_numbers(at: &Path, port: &ContainerPort, errors: &mut Errors) {
    if port.container_port == 0 {
        errors.required(&at.child("containerPort"), "");
    } else {
        check_number(&at.child("containerPort"), port.container_port, errors);
    }
    if let Some(host_port) = port.host_port.filter(|port| *port != 0) {
        check_number(&at.child("hostPort"), host_port, errors);
    }
}

/// The number of a port.
pub(super) fn check_number(at: &Path, port: i32, errors: &mut Errors) {
    for complaint in names::port_number(port) {
        errors.invalid(at, port, complaint);
    }
}

/// A port by its number or its name.
pub(super) fn check_number_or_name(at: &Path, port: &IntOrString, errors: &mut Errors) {
    match port {
        IntOrString::Int(number) => check_number(at, *number, errors),
        IntOrString::String(name) => errors.invalid_for(at, name, names::port_name(name)),
    }
}

/// No port of the host is taken twice, and on the host's network it is the container's own.
pub(super) fn check_host_ports(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    let containers_at = at.child("containers");
    let mut taken = BTreeSet::new();
    for (i, container) in spec.containers.iter().enumerate() {
        take_host_ports(&containers_at.index(i), container, &mut taken, errors);
    }
    for container in spec.init_containers.iter().flatten() {
        // Init containers run one by one, so each is on its own. The API server counts each
        // of them as the first, and clients know its answers.
        let at = at.child("initContainers").index(0);
        take_host_ports(&at, container, &mut BTreeSet::new(), errors);
    }
    if spec.host_network == Some(true) {
        check_host_network(&containers_at, spec, errors);
    }
}

fn take_host_ports(
    at: &Path,
    container: &Container,
    taken: &mut BTreeSet<String>,
    errors: &mut Errors,
) {
    for (i, port) in container.ports.iter().flatten().enumerate() {
        let Some(number) = port.host_port.filter(|number| *number != 0) else { continue };
        let protocol = port.protocol.as_deref().unwrap_or_default();
        let host_port =
            format!("{protocol}/{}/{number}", port.host_ip.as_deref().unwrap_or_default());
        if taken.contains(&host_port) {
            errors.duplicate(&at.child("ports").index(i).child("hostPort"), &host_port);
        }
        taken.insert(host_port);
    }
}

fn check_host_network(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    for (i, container) in spec.containers.iter().enumerate() {
        for (j, port) in container.ports.iter().flatten().enumerate() {
            let host_port = port.host_port.unwrap_or_default();
            if host_port != port.container_port {
                let at = at.index(i).child("ports").index(j).child("hostPort");
                let detail = "with hostNetwork it has to be the containerPort";
                errors.invalid(&at, host_port, detail);
            }
        }
    }
}
