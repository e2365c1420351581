//! When the node is measured, and what is kept between requests.

use jiff::Timestamp;
use oarsman_core::stats::{CpuUsage, MachineStats};
use oarsman_core::time::Now;

use super::*;

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

fn snapshot() -> Arc<StatsSnapshot> {
    Arc::new(StatsSnapshot {
        at: Timestamp::UNIX_EPOCH,
        node_name: "n1".to_owned(),
        machine: MachineStats::default(),
        root: None,
        groups: Vec::new(),
        system: Vec::new(),
        pods: Vec::new(),
        node_fs: None,
        image_fs: None,
        container_fs: None,
    })
}

#[test]
fn a_snapshot_is_shared_for_a_second_with_requests_that_need_no_more() {
    use StatsScope::{Containers, CpuAndMemory, Resources};
    let state =
        StatsState { last: Some((CpuAndMemory, at(5000), snapshot())), rates: CpuRates::default() };
    let rows = [
        (CpuAndMemory, 5000, true),
        (Resources, 5999, true),
        (Resources, 6000, false),
        (Containers, 5001, false),
    ];
    for (scope, millis, is_shared) in rows {
        assert_eq!(state.shared(scope, at(millis)).is_some(), is_shared, "{scope:?} {millis}");
    }
    assert!(StatsState::default().shared(Resources, at(0)).is_none());
}

#[test]
fn a_snapshot_that_a_disk_delayed_does_not_replace_a_newer_one() {
    let mut state = StatsState::default();
    let (newer, delayed) = (snapshot(), snapshot());
    state.keep(StatsScope::Resources, at(9500), &newer);
    state.keep(StatsScope::Summary, at(1000), &delayed);
    let shared = state.shared(StatsScope::Resources, at(10_000)).unwrap();
    assert!(Arc::ptr_eq(&shared, &newer));
}

#[test]
fn every_group_of_a_pass_gets_a_rate() {
    let mut rates = CpuRates::default();
    for (millis, total) in [(0, 0), (2000, 1_000_000_000)] {
        let stats = CgroupStats {
            cpu: Some(CpuUsage { total, ..CpuUsage::default() }),
            ..CgroupStats::at(Now { wall: Timestamp::UNIX_EPOCH, mono: at(millis) })
        };
        observe(
            &mut rates,
            &NodeReading {
                machine: MachineStats::default(),
                root: Some(stats.clone()),
                groups: vec![("/kubepods".to_owned(), stats.clone(), None)],
                pods: Vec::new(),
                daemons: vec![None, Some(("/daemon".to_owned(), stats, None))],
            },
        );
    }
    for group in ["/", "/kubepods", "/daemon"] {
        assert_eq!(rates.nano_cores(group), Some(500_000_000), "{group}");
    }
}
