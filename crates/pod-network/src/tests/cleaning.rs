//! Nothing is left: after a teardown, after a crash at any step, and after the last pod.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use oarsman_core::bandwidth::PodBandwidth;

use super::private_host::{Place, PrivateHost, at, on_private_host, port, request, run, set_up};
use crate::faults::injected::failing_after;
use crate::netlink::{NetlinkFamily, NetlinkSocket};
use crate::{
    HostPort, NamespaceKind, PodNetwork, PodNetworkError, PortProtocol, SandboxNetworkRequest,
};

/// More steps than there are.
const MANY_STEPS: usize = 64;

/// Links, addresses, rules, files and mounts, as other programs see them.
fn snapshot(host: &PrivateHost) -> Vec<String> {
    let links = run("ip -o link");
    let mut lines: Vec<String> = links
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .map(str::to_owned)
        .collect();
    // Without the numbers of links.
    let addresses = run("ip -o addr show scope global");
    lines.extend(
        addresses.lines().filter_map(|line| line.split_once(' ')).map(|(_, rest)| rest.to_owned()),
    );
    lines.extend(run("nft list ruleset").lines().map(str::to_owned));
    list_files(&host.state(), &mut lines);
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
    let state = host.state().display().to_string();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    lines.extend(
        points.filter(|point| point.starts_with(&state)).map(|point| format!("mount {point}")),
    );
    lines
}

fn list_files(directory: &Path, lines: &mut Vec<String>) {
    let mut names: Vec<_> =
        fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names {
        lines.push(path.display().to_string());
        if path.is_dir() {
            list_files(&path, lines);
        }
    }
}

fn all_ports() -> [HostPort; 2] {
    [port(PortProtocol::Tcp, 8080, 80), port(PortProtocol::Udp, 5353, 53)]
}

/// What is done about what a crash or another program has left.
type Removal = fn(&PrivateHost, &PodNetwork);

const REMOVALS: [(&str, Removal); 3] = [
    ("teardown by the same process", |_, network| network.tear_down("one").unwrap()),
    ("teardown by the next process", |host, _| host.network().tear_down("one").unwrap()),
    ("reconciliation by the next process", |host, _| {
        let existing = host.network().addresses("other").map(|_| "other".to_owned());
        host.network().reconcile(&existing.into_iter().collect()).unwrap();
    }),
];

/// Crashes after every step of a first set-up, and returns the steps.
fn crash_everywhere(with_other: bool) -> BTreeSet<&'static str> {
    let mut steps = BTreeSet::new();
    for (name, remove) in REMOVALS {
        for number in 0..MANY_STEPS {
            let mut ended = false;
            on_private_host(|host| {
                let network = host.network();
                if with_other {
                    set_up(&network, "other", &[port(PortProtocol::Tcp, 9090, 90)]);
                }
                let before = snapshot(host);
                let ports = all_ports();
                let everything = SandboxNetworkRequest {
                    bandwidth: PodBandwidth { ingress: Some(1 << 20), egress: Some(1 << 20) },
                    ..request("one", &ports)
                };
                let (result, seen) = failing_after(number, || network.set_up_by_steps(everything));
                steps.extend(&seen);
                ended = result.is_ok();
                assert!(ended || snapshot(host) != before, "{seen:?}");
                remove(host, &network);
                if !with_other {
                    host.network().remove_all().unwrap();
                }
                assert_eq!(snapshot(host), before, "{name} after {seen:?}");
            });
            if ended {
                break;
            }
            assert!(number + 1 < MANY_STEPS, "{name}: never ended");
        }
    }
    steps
}

#[test]
fn a_crash_at_any_step_leaves_nothing_after_a_teardown_or_reconciliation() {
    let steps = crash_everywhere(false);
    let expected = [
        "addresses",
        "bridge",
        "bridge address",
        "hairpin",
        "intermediate link",
        "limit of what is received",
        "limit of what is sent",
        "link",
        "loopback",
        "namespace",
        "record",
        "rules",
        "subnets",
    ];
    assert_eq!(steps.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_crash_at_any_step_beside_another_pod_leaves_that_pod_alone() {
    crash_everywhere(true);
}

#[test]
fn a_set_up_that_crashed_is_completed_by_another_try() {
    on_private_host(|host| {
        for number in 0..MANY_STEPS {
            let network = host.network();
            let ports = all_ports();
            let (result, seen) =
                failing_after(number, || network.set_up_by_steps(request("one", &ports)));
            drop(network);
            let network = host.network();
            let pod = set_up(&network, "one", &ports);
            let listener = Place::of(&pod).listen(80);
            Place::Host.talk(at("127.0.0.1", 8080), &listener);
            assert!(network.links_without_record().is_empty(), "{seen:?}");
            network.tear_down("one").unwrap();
            network.tear_down("one").unwrap();
            network.remove_all().unwrap();
            if result.is_ok() {
                return;
            }
        }
        panic!("never ended");
    });
}

impl PodNetwork {
    /// The links of this network that no record names.
    fn links_without_record(&self) -> Vec<String> {
        let state = self.lock();
        let known: Vec<String> =
            state.store.all().values().map(|record| self.names.link(record.lease)).collect();
        let links = run("ip -o link");
        let names = links.lines().filter_map(|line| line.split(['@', ':', ' ']).nth(2));
        let prefix = self.names.link_prefix();
        names
            .filter(|name| name.starts_with(&prefix) && !known.contains(&(*name).to_owned()))
            .map(str::to_owned)
            .collect()
    }
}

#[test]
fn a_failed_set_up_undoes_itself() {
    on_private_host(|host| {
        let network = host.network();
        set_up(&network, "other", &[]);
        let before = snapshot(host);
        for number in 0..MANY_STEPS {
            let ports = all_ports();
            let (result, seen) = failing_after(number, || network.set_up(request("one", &ports)));
            if result.is_ok() {
                assert!(seen.contains(&"rules"), "{seen:?}");
                return;
            }
            assert_eq!(snapshot(host), before, "{seen:?}");
        }
        panic!("never ended");
    });
}

#[test]
fn leases_and_networks_outlive_the_process() {
    on_private_host(|host| {
        let (one, two) = {
            let network = host.network();
            (set_up(&network, "one", &all_ports()), set_up(&network, "two", &[]))
        };
        let network = host.network();
        assert_eq!(network.addresses("one"), Some(one.addresses.clone()));
        let before = snapshot(host);
        let existing = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
        let report = network.reconcile(&existing).unwrap();
        assert!(report.removed_sandboxes.is_empty() && report.broken_sandboxes.is_empty());
        assert_eq!(snapshot(host), before);
        let third = set_up(&network, "three", &[]);
        assert!(!one.addresses.contains(&third.addresses[0]));
        assert!(!two.addresses.contains(&third.addresses[0]));
        let listener = Place::of(&one).listen(80);
        Place::of(&third).talk((one.addresses[0], 80).into(), &listener);
    });
}

#[test]
fn a_reconciliation_removes_what_belongs_to_no_sandbox() {
    on_private_host(|host| {
        let network = host.network();
        set_up(&network, "kept", &[]);
        let before = snapshot(host);
        set_up(&network, "gone", &all_ports());
        network.pins().create("gone", &[NamespaceKind::Uts], None).unwrap();
        network.pins().create("pins-only", &[NamespaceKind::Ipc], None).unwrap();
        let stray = format!("{}fff", network.names.link_prefix());
        run(&format!("ip link add {stray} type veth peer name other0"));
        let stray_shaper = network.names.shaper(0xfff);
        run(&format!("ip link add {stray_shaper} type ifb"));
        let report = host.network().reconcile(&BTreeSet::from(["kept".to_owned()])).unwrap();
        assert_eq!(report.removed_sandboxes, ["gone", "pins-only"]);
        let removed: BTreeSet<String> = report.removed_links.into_iter().collect();
        assert_eq!(removed, BTreeSet::from([stray, stray_shaper]));
        assert_eq!(snapshot(host), before);
    });
}

#[test]
fn a_reconciliation_restores_the_bridge_and_the_rules() {
    on_private_host(|host| {
        let network = host.network();
        let one = set_up(&network, "one", &[port(PortProtocol::Tcp, 8080, 80)]);
        let two = set_up(&network, "two", &[]);
        let rules = run("nft list ruleset");
        run("nft flush ruleset");
        run(&format!("ip link delete {}", network.names.bridge()));
        let existing = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
        assert!(network.reconcile(&existing).unwrap().broken_sandboxes.is_empty());
        assert_eq!(run("nft list ruleset"), rules);
        let listener = Place::of(&one).listen(80);
        Place::of(&two).talk((one.addresses[0], 80).into(), &listener);
        Place::Host.talk(at("127.0.0.1", 8080), &listener);
        // A link cannot be made again under running containers.
        run(&format!("ip link delete {}", network.names.link(2)));
        assert_eq!(network.reconcile(&existing).unwrap().broken_sandboxes, ["one"]);
    });
}

#[test]
fn a_bridge_that_was_set_down_is_up_again_with_its_addresses() {
    let set_up_another: Removal = |_, network| drop(set_up(network, "two", &[]));
    let reconcile: Removal =
        |_, network| drop(network.reconcile(&BTreeSet::from(["one".to_owned()])).unwrap());
    for repair in [set_up_another, reconcile] {
        on_private_host(|host| {
            let network = host.network();
            let one = set_up(&network, "one", &[]);
            run(&format!("ip link set {} down", network.names.bridge()));
            repair(host, &network);
            let listener = Place::of(&one).listen(80);
            for address in one.addresses {
                Place::Host.talk((address, 80).into(), &listener);
            }
        });
    }
}

/// The file of the subnets, as a disk that was full or a person may leave it.
fn damage_subnets(host: &PrivateHost) {
    fs::write(host.state().join("subnets.json"), "{").unwrap();
}

#[test]
fn pods_keep_their_network_when_the_file_of_the_subnets_is_damaged() {
    on_private_host(|host| {
        let one = set_up(&host.network(), "one", &[]);
        damage_subnets(host);
        let two = set_up(&host.network(), "two", &[]);
        let listener = Place::of(&one).listen(80);
        for address in one.addresses {
            Place::of(&two).talk((address, 80).into(), &listener);
        }
    });
}

#[test]
fn host_ports_are_removed_when_the_file_of_the_subnets_is_damaged() {
    on_private_host(|host| {
        let network = host.network();
        set_up(&network, "one", &all_ports());
        damage_subnets(host);
        network.tear_down("one").unwrap();
        assert!(!run("nft list ruleset").contains("8080"));
    });
}

#[test]
fn a_sandbox_that_is_set_up_again_without_host_ports_has_none() {
    on_private_host(|host| {
        let network = host.network();
        set_up(&network, "one", &all_ports());
        set_up(&network, "one", &[]);
        assert!(!run("nft list ruleset").contains("8080"));
    });
}

#[test]
fn what_is_in_use_is_not_removed() {
    on_private_host(|host| {
        let network = host.network();
        let before = snapshot(host);
        set_up(&network, "one", &[]);
        let error = network.remove_all().unwrap_err();
        assert!(matches!(error, PodNetworkError::InUse { .. }), "{error}");
        network.tear_down("one").unwrap();
        network.remove_all().unwrap();
        network.remove_all().unwrap();
        assert_eq!(snapshot(host), before);
        // It can begin again.
        set_up(&network, "one", &[]);
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is measured")]
fn fifty_pods_are_set_up_and_torn_down() {
    on_private_host(|host| {
        let network = host.network();
        let before = snapshot(host);
        let ids: Vec<String> = (0..50).map(|number| format!("pod-{number}")).collect();
        let started = Instant::now();
        for (number, id) in (0..).zip(&ids) {
            set_up(&network, id, &[port(PortProtocol::Tcp, 8000 + number, 80)]);
        }
        let set_up_time = started.elapsed();
        let started = Instant::now();
        for id in &ids {
            network.tear_down(id).unwrap();
        }
        let tear_down_time = started.elapsed();
        network.remove_all().unwrap();
        assert_eq!(snapshot(host), before);
        println!(
            "set up {:.2} ms each, torn down {:.2} ms each",
            set_up_time.as_secs_f64() * 20.0,
            tear_down_time.as_secs_f64() * 20.0
        );
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is measured")]
fn fifty_pods_are_set_up_at_once() {
    on_private_host(|host| {
        let network = &host.network();
        let started = Instant::now();
        std::thread::scope(|scope| {
            for number in 0..50 {
                scope.spawn(move || set_up(network, &format!("pod-{number}"), &[]));
            }
        });
        println!("50 at once in {:.0} ms", started.elapsed().as_secs_f64() * 1000.0);
        let state = network.lock();
        let leases: BTreeSet<u16> = state.store.all().values().map(|held| held.lease).collect();
        assert_eq!(leases.len(), 50);
    });
}

#[test]
fn sockets_are_opened_in_the_namespace_of_the_thread() {
    on_private_host(|_| {
        NetlinkSocket::open(NetlinkFamily::Netfilter).unwrap();
        let mut socket = crate::route::RouteSocket::open().unwrap();
        let names: Vec<String> =
            socket.links().unwrap().into_iter().map(|link| link.name).collect();
        assert_eq!(names, ["lo"]);
    });
}
