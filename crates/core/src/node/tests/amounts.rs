//! How much there is, and how much of it pods get.

use std::collections::BTreeMap;

use super::Stage;
use crate::node::amounts::{Amounts, Level, Reserved, allocatable, capacity};
use crate::quantity::Quantity;

fn spelled(amounts: &Amounts) -> BTreeMap<&str, String> {
    amounts.iter().map(|(name, amount)| (name.as_str(), amount.to_string())).collect()
}

fn amounts(rows: &[(&str, &str)]) -> Amounts {
    let parse =
        |(name, amount): &(&str, &str)| ((*name).to_owned(), Quantity::parse(amount).unwrap());
    rows.iter().map(parse).collect()
}

fn rows<'a>(rows: &[(&'a str, &str)]) -> BTreeMap<&'a str, String> {
    rows.iter().map(|(name, amount)| (*name, (*amount).to_owned())).collect()
}

#[test]
fn capacity_is_written_as_the_go_kubelet_writes_it() {
    let mut stage = Stage::new();
    stage.machine.memory = 8_148_912 * 1024;
    stage.machine.hugepages = BTreeMap::from([(2 << 20, 3), (1 << 30, 0)]);
    let expected = rows(&[
        ("cpu", "2"),
        ("ephemeral-storage", "100Gi"),
        ("hugepages-1Gi", "0"),
        ("hugepages-2Mi", "6Mi"),
        ("memory", "8148912Ki"),
        ("pods", "110"),
    ]);
    assert_eq!(spelled(&capacity(&stage.profile, &stage.machine)), expected);
}

#[test]
fn pods_are_those_of_all_cores_but_no_more_than_the_most() {
    for (per_core, most, expected) in
        [(None, 110, "110"), (Some(10), 110, "20"), (Some(60), 110, "110"), (Some(10), 5, "5")]
    {
        let mut stage = Stage::new();
        (stage.profile.pods_per_core, stage.profile.max_pods) = (per_core, most);
        let pods = capacity(&stage.profile, &stage.machine)["pods"].to_string();
        assert_eq!(pods, expected, "{per_core:?} {most}");
    }
}

#[test]
fn storage_counts_only_where_it_is_counted_and_known() {
    let has = |change: fn(&mut Stage)| {
        let mut stage = Stage::new();
        change(&mut stage);
        capacity(&stage.profile, &stage.machine).contains_key("ephemeral-storage")
    };
    assert!(has(|_| {}));
    assert!(!has(|stage| stage.profile.counts_storage = false));
    assert!(!has(|stage| stage.machine.disk = None));
}

#[test]
fn pods_get_what_is_not_kept_from_them() {
    let percent = |percent| Some(Level::Percent(percent));
    let amount = |text| Some(Level::Amount(Quantity::parse(text).unwrap()));
    let whole = [("cpu", "2"), ("memory", "4Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110")];
    let kept = |system: &[(&str, &str)], kube: &[(&str, &str)]| Reserved {
        system: amounts(system),
        kube: amounts(kube),
        ..Reserved::default()
    };
    let table = [
        ("nothing", Reserved::default(), rows(&whole)),
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
            Reserved {
                free_memory: amount("100Mi"),
                free_disk: percent(10.0),
                ..Reserved::default()
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
            Reserved { cpus: Some(1), ..kept(&[("cpu", "100m")], &[("cpu", "100m")]) },
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
        assert_eq!(spelled(&allocatable(&reserved, &amounts(&whole))), expected, "{name}");
    }
}

#[test]
fn huge_pages_are_no_memory_for_others() {
    let whole = amounts(&[("memory", "4Gi"), ("hugepages-2Mi", "1Gi"), ("hugepages-1Gi", "2Gi")]);
    let left = allocatable(&Reserved::default(), &whole);
    let expected = rows(&[("memory", "1Gi"), ("hugepages-2Mi", "1Gi"), ("hugepages-1Gi", "2Gi")]);
    assert_eq!(spelled(&left), expected);
}
