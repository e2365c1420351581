//! What is changed of the host, what is avoided, and what is found in the way.

use super::private_host::{
    Place, on_private_host, port, read_setting, request, run, set_up, write_setting,
};
use crate::{PodNetwork, PortProtocol, Subnet, find_obstacles};

#[test]
fn forwarding_is_switched_on_and_told_once() {
    on_private_host(|host| {
        let network = host.network();
        // Without another link there is nothing to forward by IPv6.
        let first = set_up(&network, "one", &[]);
        let settings: Vec<&str> =
            first.host_changes.iter().map(|change| change.setting.as_str()).collect();
        assert_eq!(settings, ["net.ipv4.ip_forward"]);
        assert_eq!((first.host_changes[0].before.as_str(), first.host_changes[0].now), ("0", "1"));
        assert_eq!(read_setting("net/ipv4/ip_forward"), "1");
        assert_eq!(read_setting("net/ipv6/conf/all/forwarding"), "0");
        assert!(set_up(&network, "two", &[]).host_changes.is_empty());

        host.connect_outside();
        let third = set_up(&network, "three", &[]);
        assert_eq!(third.host_changes[0].setting, "net.ipv6.conf.all.forwarding");
        assert_eq!(third.host_changes.len(), 1);
        assert_eq!(read_setting("net/ipv6/conf/all/forwarding"), "1");
    });
}

#[test]
fn routes_that_routers_announced_survive_forwarding() {
    on_private_host(|host| {
        host.connect_outside();
        write_setting("net/ipv6/conf/up0/accept_ra", "1");
        run("ip -6 route add default via fe80::1 dev up0 proto ra metric 2000");
        let network = host.network();
        let changes = set_up(&network, "one", &[]).host_changes;
        let settings: Vec<&str> = changes.iter().map(|change| change.setting.as_str()).collect();
        let expected =
            ["net.ipv4.ip_forward", "net.ipv6.conf.up0.accept_ra", "net.ipv6.conf.all.forwarding"];
        assert_eq!(settings, expected);
        assert_eq!(read_setting("net/ipv6/conf/up0/accept_ra"), "2");
        assert!(run("ip -6 route show default proto ra").contains("fe80::1"));
    });
}

#[test]
fn loopback_routing_is_switched_on_only_on_our_bridge_and_only_for_host_ports() {
    on_private_host(|host| {
        let network = host.network();
        let bridge = network.names.bridge();
        let setting = format!("net/ipv4/conf/{bridge}/route_localnet");
        set_up(&network, "one", &[]);
        assert_eq!(read_setting(&setting), "0");
        set_up(&network, "two", &[port(PortProtocol::Tcp, 8080, 80)]);
        assert_eq!(read_setting(&setting), "1");
        assert_eq!(read_setting("net/ipv4/conf/all/route_localnet"), "0");
    });
}

#[test]
fn a_subnet_that_the_host_routes_elsewhere_is_not_taken() {
    on_private_host(|host| {
        let network = host.network();
        let first = set_up(&network, "one", &[]).addresses[0];
        network.tear_down("one").unwrap();
        network.remove_all().unwrap();
        // The same root would take the same subnet again.
        let subnet = format!("{}.0/24", first.to_string().rsplit_once('.').unwrap().0);
        let again = set_up(&network, "one", &[]).addresses[0];
        assert!(subnet.parse::<Subnet>().unwrap().contains(again), "{again}");
        network.tear_down("one").unwrap();
        network.remove_all().unwrap();

        run("ip link add other type bridge");
        run("ip link set other up");
        run(&format!("ip route add {subnet} dev other"));
        let second = set_up(&network, "one", &[]).addresses[0];
        assert!(!subnet.parse::<Subnet>().unwrap().contains(second), "{second}");
        // While pods have addresses of it, a subnet stays, whatever comes.
        let taken = format!("{}.128/25", second.to_string().rsplit_once('.').unwrap().0);
        run(&format!("ip route add {taken} dev other"));
        let third = set_up(&host.network(), "two", &[]).addresses[0];
        assert_eq!(
            third.to_string().rsplit_once('.').unwrap().0,
            taken.rsplit_once('.').unwrap().0
        );
    });
}

#[test]
fn configured_subnets_are_used_and_cannot_change_under_pods() {
    on_private_host(|host| {
        let mut settings = host.settings();
        settings.ipv4_subnet = "198.51.100.0/25".parse().ok();
        settings.ipv6_subnet = "fd00:77::/64".parse().ok();
        let network = PodNetwork::open(settings.clone()).unwrap();
        let addresses = set_up(&network, "one", &[]).addresses;
        assert_eq!(addresses.map_to_text(), ["198.51.100.2", "fd00:77::2"]);
        settings.ipv4_subnet = "198.51.100.128/25".parse().ok();
        let changed = PodNetwork::open(settings).unwrap();
        let error = changed.set_up(request("two", &[])).unwrap_err().to_string();
        assert!(error.contains("sandbox one has an address outside"), "{error}");
        changed.tear_down("one").unwrap();
        let addresses = set_up(&changed, "two", &[]).addresses;
        assert_eq!(addresses.map_to_text(), ["198.51.100.131", "fd00:77::3"]);
        let bridge = run(&format!("ip addr show {}", changed.names.bridge()));
        assert!(bridge.contains("198.51.100.129/25") && !bridge.contains("198.51.100.1/25"));
    });
}

trait MapToText {
    fn map_to_text(&self) -> Vec<String>;
}

impl<T: ToString> MapToText for Vec<T> {
    fn map_to_text(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn a_host_without_ipv6_has_pods_without() {
    on_private_host(|host| {
        write_setting("net/ipv6/conf/all/disable_ipv6", "1");
        let network = host.network();
        let (one, two) = (set_up(&network, "one", &[]), set_up(&network, "two", &[]));
        assert_eq!(one.addresses.len(), 1);
        let listener = Place::of(&two).listen(80);
        Place::of(&one).talk((two.addresses[0], 80).into(), &listener);
    });
}

#[test]
fn a_bridge_of_another_root_is_not_touched() {
    on_private_host(|host| {
        let network = host.network();
        let bridge = network.names.bridge();
        run(&format!("ip link add {bridge} type bridge"));
        run(&format!("ip link set {bridge} alias other-program"));
        let error = network.set_up(request("one", &[])).unwrap_err().to_string();
        assert!(error.contains("other-program") && error.contains(&bridge), "{error}");
        assert!(network.remove_all().is_err());
        assert!(run(&format!("ip link show {bridge}")).contains("other-program"));
    });
}

#[test]
fn a_firewall_that_drops_forwarded_packets_is_found() {
    on_private_host(|host| {
        let network = host.network();
        set_up(&network, "one", &[]);
        let root = host.settings().root;
        assert!(find_obstacles(&root).unwrap().is_empty());
        run("nft add table ip filter");
        run(
            "nft add chain ip filter FORWARD { type filter hook forward priority 0 ; policy drop ; }",
        );
        // Neither a chain elsewhere nor one that accepts matters.
        run("nft add table inet other");
        run("nft add chain inet other in { type filter hook input priority 0 ; policy drop ; }");
        run(
            "nft add chain inet other forward { type filter hook forward priority 0 ; policy accept ; }",
        );
        let found = find_obstacles(&root).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].problem.contains("\"ip filter FORWARD\""), "{found:?}");
        // The commands that are told can be run, and are then seen to be there.
        let bridge = network.names.bridge();
        for direction in ["iifname", "oifname"] {
            let command = format!("nft insert rule ip filter FORWARD {direction} {bridge} accept");
            assert!(found[0].fix.contains(&command), "{found:?}");
            run(&command);
        }
        assert!(find_obstacles(&root).unwrap().is_empty());
        run("nft add table inet firewall");
        run(
            "nft add chain inet firewall f { type filter hook forward priority 10 ; policy drop ; }",
        );
        let found = find_obstacles(&root).unwrap();
        assert!(found[0].problem.contains("\"inet firewall f\""), "{found:?}");
        assert!(!found[0].fix.contains("iptables"), "{found:?}");
    });
}
