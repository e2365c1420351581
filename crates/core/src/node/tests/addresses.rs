//! Which addresses a node has.

use super::ip;
use crate::node::addresses::{AddressCandidates, AddressSettings, shown, unreachable_kind};
use std::net::IpAddr;

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| ip(text)).collect()
}

fn settings(given: &[&str], name: &str, in_cluster: bool) -> AddressSettings {
    AddressSettings { given: ips(given), name: name.to_owned(), in_cluster }
}

fn found(by_name: Option<&[&str]>, by_route: &[&str]) -> AddressCandidates {
    AddressCandidates { by_name: by_name.map(ips), by_route: ips(by_route) }
}

#[test]
fn given_addresses_win_over_a_name_that_is_an_address() {
    let both = ["192.0.2.1", "2001:db8::1"];
    let rows = [
        (settings(&both, "n", true), Some(&both[..])),
        (settings(&both[1..], "192.0.2.7", true), Some(&both[1..])),
        (settings(&[], "192.0.2.7", true), Some(&["192.0.2.7"])),
        (settings(&["::"], "192.0.2.7", true), Some(&["192.0.2.7"])),
        (settings(&[], "127.0.0.1", true), None),
        (settings(&[], "127.0.0.1", false), Some(&["127.0.0.1"])),
        (settings(&[], "n", true), None),
    ];
    for (settings, expected) in rows {
        assert_eq!(settings.configured(), expected.map(ips), "{settings:?}");
    }
}

#[test]
fn the_address_of_the_name_wins_over_that_of_the_default_route_and_v4_over_v6() {
    let (v4, v6, route) = ("192.0.2.1", "2001:db8::1", "192.0.2.9");
    let rows = [
        (settings(&[], "n", true), found(Some(&[v6, v4]), &[route]), v4),
        (settings(&["::"], "n", true), found(Some(&[v6, v4]), &[route]), v6),
        (settings(&["0.0.0.0"], "n", true), found(Some(&[v6]), &[route]), v6),
        (settings(&[], "n", true), found(Some(&[]), &[v6, route]), route),
        (settings(&[], "n", true), found(Some(&["127.0.1.1"]), &[route]), route),
        (settings(&[], "n", true), found(None, &[route]), route),
    ];
    for (settings, found, expected) in rows {
        assert_eq!(settings.choose(&found, &[]), [ip(expected)], "{settings:?} {found:?}");
    }
}

#[test]
fn an_address_that_only_this_machine_reaches_is_none_in_a_cluster() {
    let nothing = found(Some(&["127.0.0.1", "fe80::1"]), &["169.254.1.1"]);
    assert_eq!(settings(&[], "n", true).choose(&nothing, &[]), ips(&[]));
    assert_eq!(settings(&[], "n", true).choose(&nothing, &ips(&["192.0.2.1"])), ips(&[]));
    assert_eq!(settings(&[], "n", false).choose(&nothing, &[]), ips(&["127.0.0.1"]));
}

#[test]
fn known_addresses_stay_while_the_resolver_does_not_answer() {
    let (known, route) = (ips(&["192.0.2.1"]), ["192.0.2.9"]);
    let node = settings(&[], "n", true);
    assert_eq!(node.choose(&found(None, &route), &known), known);
    assert_eq!(node.choose(&found(Some(&[]), &route), &known), ips(&route));
    assert_eq!(node.choose(&found(None, &route), &ips(&["127.0.0.1"])), ips(&route));
}

#[test]
fn addresses_that_no_other_machine_reaches_have_a_reason() {
    let rows = [
        ("0.0.0.0", Some("unspecified")),
        ("127.0.0.1", Some("loopback")),
        ("::1", Some("loopback")),
        ("224.0.0.1", Some("multicast")),
        ("ff02::1", Some("multicast")),
        ("169.254.1.1", Some("only for one link")),
        ("fe80::1", Some("only for one link")),
        ("192.0.2.1", None),
        ("2001:db8::1", None),
    ];
    for (text, expected) in rows {
        let kind = unreachable_kind(ip(text));
        assert_eq!(kind.is_some(), expected.is_some(), "{text}");
        assert!(kind.is_none_or(|kind| kind.contains(expected.unwrap())), "{kind:?}");
    }
}

#[test]
fn a_node_without_an_address_shows_its_name_alone() {
    let spell = |ips: &[IpAddr]| -> Vec<String> {
        let all = shown(ips, "n1").into_iter();
        all.map(|address| format!("{}={}", address.type_, address.address)).collect()
    };
    assert_eq!(spell(&[]), ["Hostname=n1"]);
    assert_eq!(spell(&ips(&["192.0.2.1"])), ["InternalIP=192.0.2.1", "Hostname=n1"]);
}
