//! The rules of our table: NAT for what pods send elsewhere, and host ports.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::host_port::HostPort;
use crate::names::Names;
use crate::nftables::{Chain, Hook, Rule, Table};
use crate::records::SandboxRecord;
use crate::subnet::Subnet;

const HOST_PORTS: &str = "host-ports";

/// The whole table, made from the records alone.
pub(crate) fn table(
    names: &Names,
    subnets: &[Subnet],
    records: &BTreeMap<String, SandboxRecord>,
) -> Table {
    let to_host_ports = || vec![Rule::new().destination_is_local().jump(HOST_PORTS)];
    let bridge = names.bridge();
    let chains = vec![
        Chain { name: HOST_PORTS, hook: None, rules: host_port_rules(records) },
        Chain { name: "guard", hook: Some(Hook::RAW_PREROUTING), rules: guard_rules(&bridge) },
        Chain { name: "prerouting", hook: Some(Hook::NAT_PREROUTING), rules: to_host_ports() },
        Chain { name: "output", hook: Some(Hook::NAT_OUTPUT), rules: to_host_ports() },
        Chain {
            name: "postrouting",
            hook: Some(Hook::NAT_POSTROUTING),
            rules: masquerade_rules(&bridge, subnets),
        },
    ];
    Table { name: names.table(), chains }
}

/// The bridge accepts packets from and to 127.0.0.0/8, so that host ports are open there. A pod must not send such ones: they would
/// reach services that listen on the host's loopback address only (CVE-2020-8558).
fn guard_rules(bridge: &str) -> Vec<Rule> {
    let Some(loopback) = loopback() else {
        return Vec::new();
    };
    vec![
        Rule::new().input_link(bridge).destination_in(loopback).drop(),
        Rule::new().input_link(bridge).source_in(loopback).drop(),
    ]
}

fn masquerade_rules(bridge: &str, subnets: &[Subnet]) -> Vec<Rule> {
    let mut rules = Vec::new();
    for subnet in subnets {
        // Other hosts have no route to pods.
        rules.push(Rule::new().source_in(*subnet).output_other_link(bridge).masquerade());
        // A pod that reaches a pod by a host port: the answer must come back by the host, which knows the connection.
        let among_pods = Rule::new().source_in(*subnet).output_link(bridge);
        rules.push(among_pods.with_changed_destination().masquerade());
    }
    // The host reaches a pod by a host port of 127.0.0.1: a pod cannot answer to that address.
    rules.extend(
        loopback().map(|loopback| Rule::new().source_in(loopback).output_link(bridge).masquerade()),
    );
    rules
}

fn host_port_rules(records: &BTreeMap<String, SandboxRecord>) -> Vec<Rule> {
    // The kernel sends nothing from ::1 to another link, whatever its destination is changed to.
    let mut rules = vec![Rule::new().destination_is(Ipv6Addr::LOCALHOST.into()).leave()];
    for (sandbox, record) in records {
        for port in &record.ports {
            let addresses = record.addresses.iter().filter(|pod| port.is_for(pod.is_ipv4()));
            rules.extend(addresses.map(|pod| {
                host_port_rule(port, *pod).with_comment(&format!("{} {sandbox}", record.pod))
            }));
        }
    }
    rules
}

fn host_port_rule(port: &HostPort, pod: IpAddr) -> Rule {
    let rule = match port.only_address() {
        Some(address) => Rule::new().destination_is(address),
        None => Rule::new().of_ip(pod.is_ipv4()),
    };
    rule.destination_port(port.protocol.number(), port.host_port).send_to(pod, port.pod_port)
}

fn loopback() -> Option<Subnet> {
    Subnet::of(Ipv4Addr::LOCALHOST.into(), 8)
}
