//! Pods reach each other and the rest of the world.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use oarsman_host::namespaces::NamespaceKind;

use super::private_host::{HOST, OUTSIDE, Place, at, on_private_host, run, set_up, write_setting};
use crate::bridge::await_carrier;
use crate::route::{LinkOperation, RouteSocket};

#[test]
fn two_pods_talk_to_each_other_by_both_families() {
    on_private_host(|host| {
        let network = host.network();
        let (one, two) = (set_up(&network, "one", &[]), set_up(&network, "two", &[]));
        assert_eq!(one.addresses.len(), 2);
        assert!(one.addresses[0].is_ipv4() && one.addresses[1].is_ipv6());
        let listener = Place::of(&two).listen(80);
        for (from, to) in one.addresses.iter().zip(&two.addresses) {
            // No translation: a pod is seen by its own address.
            let seen = Place::of(&one).talk(SocketAddr::new(*to, 80), &listener);
            assert_eq!(seen, *from);
            // The host reaches pods, too.
            Place::Host.talk(SocketAddr::new(*to, 80), &listener);
        }
        let own = Place::of(&one).listen(81);
        Place::of(&one).talk(at("127.0.0.1", 81), &own);
        Place::of(&one).talk(at("::1", 81), &own);
        Place::of(&one).talk(SocketAddr::new(one.addresses[0], 81), &own);
    });
}

#[test]
fn a_pod_reaches_other_hosts_by_the_address_of_this_one() {
    on_private_host(|host| {
        let outside = host.connect_outside();
        let network = host.network();
        let pod = set_up(&network, "one", &[]);
        let listener = outside.listen(80);
        for (to, expected) in OUTSIDE.iter().zip(HOST) {
            let seen = Place::of(&pod).talk(at(to, 80), &listener);
            assert_eq!(seen, expected.parse::<IpAddr>().unwrap());
        }
        // Not by routing: the other host knows no way to pods.
        assert!(!outside.can_connect(SocketAddr::new(pod.addresses[0], 80)));
    });
}

#[test]
fn a_pod_reaches_other_hosts_where_new_links_do_not_forward_by_default() {
    on_private_host(|host| {
        let outside = host.connect_outside();
        write_setting("net/ipv4/ip_forward", "1");
        write_setting("net/ipv4/conf/default/forwarding", "0");
        let pod = set_up(&host.network(), "one", &[]);
        let listener = outside.listen(80);
        Place::of(&pod).talk(at(OUTSIDE[0], 80), &listener);
    });
}

#[test]
fn links_have_the_mtu_of_the_default_link() {
    on_private_host(|host| {
        let network = host.network();
        let pod = set_up(&network, "one", &[]);
        assert!(Place::of(&pod).enter(|| run("ip link show eth0")).contains("mtu 1500"));
        network.tear_down("one").unwrap();
        network.remove_all().unwrap();
        host.connect_outside();
        run("ip link set up0 mtu 1400");
        let pod = set_up(&network, "one", &[]);
        assert!(Place::of(&pod).enter(|| run("ip link show eth0")).contains("mtu 1400"));
        assert!(run(&format!("ip link show {}", network.names.bridge())).contains("mtu 1400"));
    });
}

/// Packets that are sent to a link before are dropped, and a neighbour is looked for again only after a second.
#[test]
fn a_pod_that_is_set_up_has_links_that_carry_packets() {
    on_private_host(|host| {
        let network = host.network();
        for lease in 2..52 {
            set_up(&network, &format!("pod-{lease}"), &[]);
            // All of them are listed, because newer kernels bring a single link up to date when it is asked for.
            let links = RouteSocket::open().unwrap().links().unwrap();
            let of = |name: String| links.iter().find(|link| link.name == name).unwrap().operation;
            assert_eq!(of(network.names.link(lease)), LinkOperation::Up, "{lease}");
            assert_ne!(of(network.names.bridge()), LinkOperation::Down, "{lease}");
        }
    });
}

#[test]
fn a_link_is_waited_for_until_it_carries_packets_or_the_deadline_is_over() {
    on_private_host(|host| {
        let network = host.network();
        let pod = Place::of(&set_up(&network, "one", &[]));
        pod.enter(|| run("ip link set eth0 down"));
        let mut socket = RouteSocket::open().unwrap();
        let short = Duration::from_millis(50);
        let error = await_carrier(&mut socket, &network.names, 2, short).unwrap_err().to_string();
        assert!(error.contains(&network.names.link(2)) && error.contains("timed out"), "{error}");
        std::thread::scope(|scope| {
            scope.spawn(|| pod.enter(|| run("ip link set eth0 up")));
            await_carrier(&mut socket, &network.names, 2, Duration::from_secs(30)).unwrap();
        });
    });
}

#[test]
fn a_pod_does_not_reach_the_loopback_address_of_the_host() {
    on_private_host(|host| {
        let network = host.network();
        let ports = [super::private_host::port(crate::PortProtocol::Tcp, 8080, 80)];
        let pod = set_up(&network, "one", &ports);
        let bridge = network.names.bridge();
        let gateway = network.lock().store.get("one").unwrap().addresses[0].to_string();
        let gateway = format!("{}.1", gateway.rsplit_once('.').unwrap().0);
        // A pod with CAP_NET_ADMIN can send such packets.
        Place::of(&pod).enter(|| {
            write_setting("net/ipv4/conf/eth0/route_localnet", "1");
            run("ip addr del 127.0.0.1/8 dev lo");
            run(&format!("ip route add 127.0.0.1/32 via {gateway} dev eth0"));
        });
        let _listener = Place::Host.listen(9999);
        assert!(!Place::of(&pod).can_connect(at("127.0.0.1", 9999)));
        // That is the guard's doing.
        run(&format!("nft flush chain inet {} guard", network.names.table()));
        assert!(Place::of(&pod).can_connect(at("127.0.0.1", 9999)), "{bridge}");
    });
}

#[test]
fn namespaces_of_other_kinds_are_pinned_too() {
    on_private_host(|host| {
        let network = host.network();
        let pins = network.pins();
        let kinds = [NamespaceKind::Ipc, NamespaceKind::Uts];
        pins.create("one", &kinds, Some("web-0")).unwrap();
        pins.create("one", &kinds, Some("web-1")).unwrap();
        let uts = pins.path("one", NamespaceKind::Uts).unwrap();
        assert_eq!(run(&format!("nsenter --uts={} hostname", uts.display())).trim(), "web-0");
        assert_ne!(run("hostname").trim(), "web-0");
        let ipc = pins.path("one", NamespaceKind::Ipc).unwrap();
        run(&format!("nsenter --ipc={} ipcmk --semaphore 1", ipc.display()));
        assert!(run(&format!("nsenter --ipc={} ipcs -s", ipc.display())).contains("0x"));
        assert!(pins.open("one", NamespaceKind::Network).is_err());
        assert!(pins.create("two", &[NamespaceKind::Uts], Some(&"a".repeat(65))).is_err());
        assert!(pins.create("../two", &kinds, None).is_err());
        // A pin of a process's own namespace.
        pins.adopt("three", NamespaceKind::Uts, "/proc/thread-self/ns/uts".as_ref()).unwrap();
        assert!(pins.adopt("three", NamespaceKind::Uts, "/proc/self/ns/uts".as_ref()).is_err());
        assert_eq!(pins.sandboxes().unwrap(), ["one", "three", "two"]);
        for sandbox in ["one", "two", "three", "three"] {
            pins.remove_all(sandbox).unwrap();
        }
        assert!(pins.sandboxes().unwrap().is_empty());
    });
}
