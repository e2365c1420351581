//! How much there is, and how much of it pods get.

use std::collections::BTreeMap;

use super::NodeFixture;
use crate::node::amounts::{
    EvictionThreshold, NodeResourceList, ReservedResources, allocatable, capacity,
};
use crate::quantity::Quantity;

fn format_condition(amounts: &NodeResourceList) -> BTreeMap<&str, String> {
    amounts.iter().map(|(name, amount)| (name.as_str(), amount.to_string())).collect()
}

fn amounts(rows: &[(&str, &str)]) -> NodeResourceList {
    let parse =
        |(name, amount): &(&str, &str)| ((*name).to_owned(), Quantity::parse(amount).unwrap());
    rows.iter().map(parse).collect()
}

fn rows<'a>(rows: &[(&'a str, &str)]) -> BTreeMap<&'a str, String> {
    rows.iter().map(|(name, amount)| (*name, (*amount).to_owned())).collect()
}

#[test]
fn capacity_is_written_as_the_go_kubelet_writes_it() {
    let mut fixture = NodeFixture::new();
    fixture.machine.memory = 8_148_912 * 1024;
    fixture.machine.hugepages = BTreeMap::from([(2 << 20, 3), (1 << 30, 0)]);
    let expected = rows(&[
        ("cpu", "2"),
        ("ephemeral-storage", "100Gi"),
        ("hugepages-1Gi", "0"),
        ("hugepages-2Mi", "6Mi"),
        ("memory", "8148912Ki"),
        ("pods", "110"),
    ]);
    assert_eq!(format_condition(&capacity(&fixture.profile, &fixture.machine)), expected);
}

#[test]
fn pods_are_those_of_all_cores_but_no_more_than_the_most() {
    for (per_core, most, expected) in
        [(None, 110, "110"), (Some(10), 110, "20"), (Some(60), 110, "110"), (Some(10), 5, "5")]
    {
        let mut fixture = NodeFixture::new();
        (fixture.profile.pods_per_core, fixture.profile.max_pods) = (per_core, most);
        let pods = capacity(&fixture.profile, &fixture.machine)["pods"].to_string();
        assert_eq!(pods, expected, "{per_core:?} {most}");
    }
}

#[test]
fn storage_counts_only_where_it_is_counted_and_known() {
    let has = |change: fn(&mut NodeFixture)| {
        let mut fixture = NodeFixture::new();
        change(&mut fixture);
        capacity(&fixture.profile, &fixture.machine).contains_key("ephemeral-storage")
    };
    assert!(has(|_| {}));
    assert!(!has(|fixture| fixture.profile.counts_storage = false));
    assert!(!has(|fixture| fixture.machine.disk = None));
}

#[test]
fn pods_get_what_is_not_kept_from_them() {
    let percent = |percent| Some(EvictionThreshold::Percent(percent));
    let amount = |text| Some(EvictionThreshold::Amount(Quantity::parse(text).unwrap()));
    let whole = [("cpu", "2"), ("memory", "4Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110")];
    let kept = |system: &[(&str, &str)], kube: &[(&str, &str)]| ReservedResources {
        system: amounts(system),
        kube: amounts(kube),
        ..ReservedResources::default()
    };
    let table = [
        ("nothing", ReservedResources::default(), rows(&whole)),
        (
            "both reserves",
            kept(&[("cpu", "100m"), ("memory", "1Gi")], &[("cpu", "250m"), ("memory", "512Mi")]),
            rows(&[
                ("cpu", "1650m"),
                ("memory", "2560Mi"),
                ("ephemeral-storage", "100Gi"),
                ("pods", "110"),
            ]),
        ),
        (
            "what must stay free",
            ReservedResources {
                free_memory: amount("100Mi"),
                free_disk: percent(10.0),
                ..ReservedResources::default()
            },
            // A tenth in single precision is a little more than a tenth.
            rows(&[
                ("cpu", "2"),
                ("memory", "3996Mi"),
                ("ephemeral-storage", "96636764000"),
                ("pods", "110"),
            ]),
        ),
        (
            "whole CPUs in the place of amounts",
            ReservedResources { cpus: Some(1), ..kept(&[("cpu", "100m")], &[("cpu", "100m")]) },
            rows(&[
                ("cpu", "1"),
                ("memory", "4Gi"),
                ("ephemeral-storage", "100Gi"),
                ("pods", "110"),
            ]),
        ),
        (
            "more than there is",
            kept(&[("memory", "5Gi")], &[]),
            rows(&[("cpu", "2"), ("memory", "0"), ("ephemeral-storage", "100Gi"), ("pods", "110")]),
        ),
    ];
    for (name, reserved, expected) in table {
        assert_eq!(format_condition(&allocatable(&reserved, &amounts(&whole))), expected, "{name}");
    }
}

#[test]
fn huge_pages_are_no_memory_for_others() {
    let whole = amounts(&[("memory", "4Gi"), ("hugepages-2Mi", "1Gi"), ("hugepages-1Gi", "2Gi")]);
    let left = allocatable(&ReservedResources::default(), &whole);
    let expected = rows(&[("memory", "1Gi"), ("hugepages-2Mi", "1Gi"), ("hugepages-1Gi", "2Gi")]);
    assert_eq!(format_condition(&left), expected);
}
