//! Ports of the host that lead to pods.

use std::net::{IpAddr, SocketAddr};

use super::private_host::{
    HOST, OUTSIDE, Place, at, on_private_host, port, request, run, set_up, talk_udp, write_setting,
};
use crate::{HostPort, PortProtocol};

/// With packets of bridges passing the filters of IP, as Docker switches it on, and without.
const BRIDGE_FILTERS: [&str; 2] = ["0", "1"];

fn with_bridge_filter(value: &str) {
    write_setting("net/bridge/bridge-nf-call-iptables", value);
    write_setting("net/bridge/bridge-nf-call-ip6tables", value);
}

#[test]
fn a_host_port_answers_everyone_by_both_families() {
    for filter in BRIDGE_FILTERS {
        on_private_host(|host| {
            with_bridge_filter(filter);
            let outside = host.connect_outside();
            let network = host.network();
            let pod = set_up(&network, "one", &[port(PortProtocol::Tcp, 8080, 80)]);
            let other = set_up(&network, "two", &[]);
            let listener = Place::of(&pod).listen(80);
            for (address, client) in HOST.iter().zip(OUTSIDE) {
                // From outside, with the client's own address.
                let seen = outside.talk(at(address, 8080), &listener);
                assert_eq!(seen, client.parse::<IpAddr>().unwrap());
                // From the host itself, from the pod itself (hairpin), and from another pod.
                Place::Host.talk(at(address, 8080), &listener);
                Place::of(&pod).talk(at(address, 8080), &listener);
                Place::of(&other).talk(at(address, 8080), &listener);
            }
            Place::Host.talk(at("127.0.0.1", 8080), &listener);
            Place::Host.talk(at("127.1.2.3", 8080), &listener);
            assert!(!outside.can_connect(at(HOST[0], 8081)));
            network.tear_down("one").unwrap();
            assert!(!outside.can_connect(at(HOST[0], 8080)));
            assert!(!Place::Host.can_connect(at("127.0.0.1", 8080)));
        });
    }
}

/// The kernel does not use a link-local address for as long as it looks for a duplicate of it, and asks for the hardware address of a
/// pod from no other address when it forwards.
#[test]
fn a_host_port_answers_at_once_however_long_the_host_looks_for_duplicate_addresses() {
    for everywhere in ["0", "1"] {
        on_private_host(|host| {
            let outside = host.connect_outside();
            // Longer than the kernel looks for a neighbour.
            write_setting("net/ipv6/conf/default/dad_transmits", "20");
            write_setting("net/ipv6/conf/all/accept_dad", everywhere);
            let network = host.network();
            let pod = set_up(&network, "one", &[port(PortProtocol::Tcp, 8080, 80)]);
            let listener = Place::of(&pod).listen(80);
            outside.talk(at(HOST[1], 8080), &listener);
        });
    }
}

#[test]
fn a_host_port_of_udp_answers() {
    on_private_host(|host| {
        let outside = host.connect_outside();
        let network = host.network();
        let pod = set_up(&network, "one", &[port(PortProtocol::Udp, 5353, 53)]);
        let server = Place::of(&pod).udp("[::]:53");
        let seen = talk_udp(&outside.udp("0.0.0.0:0"), at(HOST[0], 5353), &server);
        assert_eq!(seen, OUTSIDE[0].parse::<IpAddr>().unwrap());
        talk_udp(&outside.udp("[::]:0"), at(HOST[1], 5353), &server);
        talk_udp(&Place::Host.udp("0.0.0.0:0"), at("127.0.0.1", 5353), &server);
        talk_udp(&Place::of(&pod).udp("0.0.0.0:0"), at(HOST[0], 5353), &server);
    });
}

#[test]
fn a_client_of_udp_that_never_stops_sending_reaches_the_next_pod() {
    on_private_host(|host| {
        let outside = host.connect_outside();
        let network = host.network();
        let ports = [port(PortProtocol::Udp, 5353, 53)];
        let client = outside.udp("0.0.0.0:0");
        // Before there is a pod, after it, and with the next one.
        client.send_to(b"lost", at(HOST[0], 5353)).unwrap();
        for sandbox in ["one", "two"] {
            let pod = set_up(&network, sandbox, &ports);
            let server = Place::of(&pod).udp("[::]:53");
            talk_udp(&client, at(HOST[0], 5353), &server);
            network.tear_down(sandbox).unwrap();
            client.send_to(b"lost", at(HOST[0], 5353)).unwrap();
        }
    });
}

#[test]
fn a_host_port_of_one_address_answers_there_only() {
    on_private_host(|host| {
        let outside = host.connect_outside();
        let network = host.network();
        let of = |address: &str, host_port| HostPort {
            host_ip: address.parse().ok(),
            ..port(PortProtocol::Tcp, host_port, 80)
        };
        let ports =
            [of("127.0.0.1", 8080), of(HOST[0], 8081), of(HOST[1], 8082), of("0.0.0.0", 8083)];
        let pod = set_up(&network, "one", &ports);
        let listener = Place::of(&pod).listen(80);
        Place::Host.talk(at("127.0.0.1", 8080), &listener);
        assert!(!outside.can_connect(at(HOST[0], 8080)));
        outside.talk(at(HOST[0], 8081), &listener);
        assert!(!Place::Host.can_connect(at("127.0.0.1", 8081)));
        outside.talk(at(HOST[1], 8082), &listener);
        assert!(!outside.can_connect(at(HOST[0], 8082)));
        outside.talk(at(HOST[0], 8083), &listener);
        assert!(!outside.can_connect(at(HOST[1], 8083)));
    });
}

#[test]
fn services_of_the_host_at_other_ports_and_of_other_hosts_stay_reachable() {
    on_private_host(|host| {
        let outside = host.connect_outside();
        let network = host.network();
        set_up(&network, "one", &[port(PortProtocol::Tcp, 8080, 80)]);
        let own = Place::Host.listen(8081);
        outside.talk(at(HOST[0], 8081), &own);
        Place::Host.talk(at("127.0.0.1", 8081), &own);
        // The same port of another host is not ours.
        let theirs = outside.listen(8080);
        Place::Host.talk(at(OUTSIDE[0], 8080), &theirs);
        let localhost = Place::Host.listen(8080);
        Place::Host.talk(at("::1", 8080), &localhost);
    });
}

#[test]
fn a_port_that_is_taken_is_refused_by_name_and_nothing_is_left() {
    on_private_host(|host| {
        let network = host.network();
        let ports = [port(PortProtocol::Tcp, 8080, 80)];
        let first = set_up(&network, "one", &ports);
        let error = network.set_up(request("two", &ports)).unwrap_err().to_string();
        assert!(error.contains("8080/TCP is taken by pod default/web (sandbox one)"), "{error}");
        assert_eq!(network.pins().sandboxes().unwrap(), ["one"]);
        assert!(network.addresses("two").is_none());
        // The pod that has it is not disturbed, and gives it away with its end.
        let listener = Place::of(&first).listen(80);
        Place::Host.talk(at("127.0.0.1", 8080), &listener);
        network.tear_down("one").unwrap();
        let second = set_up(&network, "two", &ports);
        let listener = Place::of(&second).listen(80);
        Place::Host.talk(at("127.0.0.1", 8080), &listener);
    });
}

#[test]
fn nft_shows_the_rules_that_were_meant() {
    on_private_host(|host| {
        let network = host.network();
        let ports = [
            port(PortProtocol::Tcp, 8080, 80),
            HostPort { host_ip: HOST[0].parse().ok(), ..port(PortProtocol::Sctp, 9090, 90) },
        ];
        let pod = set_up(&network, "one", &ports);
        let rules = run("nft list ruleset");
        let (bridge, table) = (network.names.bridge(), network.names.table());
        let [ipv4, ipv6] = pod.addresses[..] else { panic!("{:?}", pod.addresses) };
        for expected in [
            format!("table inet {table} {{"),
            format!("meta nfproto ipv4 tcp dport 8080 dnat ip to {}", SocketAddr::new(ipv4, 80)),
            format!("meta nfproto ipv6 tcp dport 8080 dnat ip6 to {}", SocketAddr::new(ipv6, 80)),
            format!(
                "ip daddr {} sctp dport 9090 dnat ip to {}",
                HOST[0],
                SocketAddr::new(ipv4, 90)
            ),
            "comment \"default/web one\"".to_owned(),
            "type nat hook prerouting priority dstnat; policy accept;".to_owned(),
            "type nat hook postrouting priority srcnat; policy accept;".to_owned(),
            "type filter hook prerouting priority raw; policy accept;".to_owned(),
            "fib daddr type local jump host-ports".to_owned(),
            format!("iifname \"{bridge}\" ip daddr 127.0.0.0/8 drop"),
            format!("oifname != \"{bridge}\" masquerade"),
            format!("oifname \"{bridge}\" ct status dnat masquerade"),
            format!("ip saddr 127.0.0.0/8 oifname \"{bridge}\" masquerade"),
        ] {
            assert!(rules.contains(&expected), "{expected} is not in\n{rules}");
        }
        // Once more is the same.
        set_up(&network, "one", &ports);
        assert_eq!(run("nft list ruleset"), rules);
    });
}
