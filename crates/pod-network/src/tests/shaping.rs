//! What pods receive and send is limited, and nothing of that is left behind.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use oarsman_core::bandwidth::PodBandwidth;

use super::private_host::{Place, on_private_host, request, run};
use crate::{PodNetwork, SandboxNetwork, SandboxNetworkRequest};

/// 8 Mbit/s are a megabyte a second.
const RATE: u64 = 8_000_000;
const SENT: usize = 2_000_000;
/// A bucket of 80 KiB is full at the beginning, and the rate counts headers, too; the rest takes so long at least.
const SHORTEST: Duration = Duration::from_millis(1_800);

fn set_up_limited(network: &PodNetwork, sandbox: &str, bandwidth: PodBandwidth) -> SandboxNetwork {
    network.set_up(SandboxNetworkRequest { bandwidth, ..request(sandbox, &[]) }).unwrap()
}

fn both() -> PodBandwidth {
    PodBandwidth { ingress: Some(RATE), egress: Some(RATE) }
}

/// Sends bytes from one place to another, and returns how long it took.
#[expect(clippy::disallowed_methods, reason = "how long it takes is what the test is about")]
fn transfer(from: &Place, to: &Place, address: SocketAddr) -> Duration {
    let listener = to.listen(address.port());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = from.enter(|| std::net::TcpStream::connect(address)).unwrap();
            client.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
            client.write_all(&vec![7; SENT]).unwrap();
        });
        let (mut server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), SENT);
    });
    begun.elapsed()
}

/// What limits links on the host of the test.
fn disciplines() -> String {
    run("tc qdisc show") + &run("ip -o link show type ifb")
}

#[test]
fn a_pod_receives_and_sends_no_faster_than_its_annotations_say() {
    on_private_host(|host| {
        let network = host.network();
        let limited = set_up_limited(&network, "limited", both());
        let free = set_up_limited(&network, "free", PodBandwidth::default());
        let (limited_place, free_place) = (Place::of(&limited), Place::of(&free));
        for (address, other) in limited.addresses.iter().zip(&free.addresses) {
            let received = transfer(&free_place, &limited_place, SocketAddr::new(*address, 80));
            assert!(received >= SHORTEST, "received in {received:?} by {address}");
            let sent = transfer(&limited_place, &free_place, SocketAddr::new(*other, 80));
            assert!(sent >= SHORTEST, "sent in {sent:?} to {other}");
        }
        // Without a limit it takes milliseconds; that it is faster is what makes this test one.
        let free_time = transfer(&Place::Host, &free_place, SocketAddr::new(free.addresses[0], 81));
        assert!(free_time < SHORTEST, "{free_time:?}");
    });
}

#[test]
fn one_direction_is_limited_alone() {
    on_private_host(|host| {
        let network = host.network();
        let egress = PodBandwidth { ingress: None, egress: Some(RATE) };
        let pod = set_up_limited(&network, "one", egress);
        let place = Place::of(&pod);
        let received = transfer(&Place::Host, &place, SocketAddr::new(pod.addresses[0], 80));
        assert!(received < SHORTEST, "{received:?}");
        let shown = disciplines();
        assert_eq!(shown.matches("qdisc tbf 1:").count(), 1, "{shown}");
        assert_eq!(shown.matches("qdisc ingress").count(), 1, "{shown}");
        network.tear_down("one").unwrap();
        let ingress = PodBandwidth { ingress: Some(RATE), egress: None };
        set_up_limited(&network, "two", ingress);
        let shown = disciplines();
        assert!(shown.contains("rate 8Mbit burst 80Kb"), "{shown}");
        assert_eq!(shown.matches("qdisc tbf 1:").count(), 1, "{shown}");
        assert!(!shown.contains("qdisc ingress") && !shown.contains("ifb"), "{shown}");
    });
}

#[test]
fn limits_change_with_another_set_up_and_go_with_the_pod() {
    on_private_host(|host| {
        let network = host.network();
        let before = disciplines();
        set_up_limited(&network, "one", both());
        let fast = PodBandwidth { ingress: Some(40_000_000_000), egress: Some(40_000_000_000) };
        set_up_limited(&network, "one", fast);
        let shown = disciplines();
        assert_eq!(shown.matches("rate 40Gbit").count(), 2, "{shown}");
        set_up_limited(&network, "one", PodBandwidth::default());
        assert!(!disciplines().contains("tbf"), "{}", disciplines());
        assert!(!disciplines().contains("ifb"), "{}", disciplines());
        set_up_limited(&network, "one", both());
        // By a process that knows of it from its record alone.
        let next = host.network();
        next.tear_down("one").unwrap();
        next.remove_all().unwrap();
        assert_eq!(disciplines(), before);
    });
}

#[test]
fn a_limit_that_another_program_has_removed_is_restored() {
    on_private_host(|host| {
        let network = host.network();
        let pod = set_up_limited(&network, "one", both());
        let lease = network.lock().store.get("one").unwrap().lease;
        let whole = disciplines().lines().count();
        run(&format!("ip link delete {}", network.names.shaper(lease)));
        run(&format!("tc qdisc del dev {} root", network.names.link(lease)));
        let existing = std::collections::BTreeSet::from(["one".to_owned()]);
        assert!(host.network().reconcile(&existing).unwrap().removed_links.is_empty());
        assert_eq!(disciplines().lines().count(), whole);
        let place = Place::of(&pod);
        let received = transfer(&Place::Host, &place, SocketAddr::new(pod.addresses[0], 80));
        assert!(received >= SHORTEST, "{received:?}");
        // A limit that is there stays as it is.
        let shaper = || run("ip -o link show type ifb");
        let link = shaper();
        host.network().reconcile(&existing).unwrap();
        assert_eq!(shaper(), link);
    });
}
