//! Rates of CPU time between two readings.

use std::time::Duration;

use super::super::cpu_rates::*;
use crate::time::Mono;

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

/// Readings of one group, and the rate after the last of them.
fn rate(readings: &[(u64, u64)]) -> Option<u64> {
    let mut rates = CpuRates::default();
    for (millis, total) in readings {
        rates.observe("/a", at(*millis), *total);
    }
    rates.nano_cores("/a")
}

#[test]
fn a_rate_needs_two_readings_of_the_same_group() {
    type Row<'a> = (&'a str, &'a [(u64, u64)], Option<u64>);
    let rows: [Row<'_>; 10] = [
        ("one reading", &[(0, 5)], None),
        ("a short first window", &[(0, 0), (100, 50_000_000)], Some(500_000_000)),
        ("a later window", &[(0, 0), (10_000, 5_000_000_000)], Some(500_000_000)),
        ("the last window counts", &[(0, 0), (10_000, 9), (20_000, 9 + 20)], Some(2)),
        ("a short window keeps the rate before", &[(0, 0), (2000, 2000), (2500, 9000)], Some(1000)),
        ("which is not forgotten", &[(0, 0), (2000, 2000), (2500, 9000), (4000, 4000)], Some(1000)),
        ("too long ago", &[(0, 0), (120_001, 1 << 40)], None),
        ("another group of the same name", &[(0, 500), (2000, 400)], None),
        ("no time has passed", &[(5, 1), (5, 2)], None),
        ("twice in one pass", &[(0, 0), (1, 900), (100, 50_000_000)], Some(500_000_000)),
    ];
    for (what, readings, expected) in rows {
        assert_eq!(rate(readings), expected, "{what}");
    }
}

#[test]
fn groups_without_a_rate_are_named_and_old_ones_forgotten() {
    let mut rates = CpuRates::default();
    rates.observe("/a", at(0), 0);
    rates.observe("/b", at(0), 0);
    rates.observe("/a", at(1000), 1);
    assert_eq!(rates.without_rate(at(0)), ["/b"]);
    assert_eq!(rates.without_rate(at(1)), [""; 0], "it was not read since");
    rates.forget_old(at(120_001));
    assert_eq!(rates.without_rate(at(0)), [""; 0]);
    assert_eq!(rates.nano_cores("/a"), Some(1));
    rates.forget_old(at(200_000));
    assert_eq!(rates.nano_cores("/a"), None);
}
