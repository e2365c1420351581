//! When a status is told, and the lease.

use std::time::Duration;

use super::moment;
use crate::node::lease::{renewal, renewed};
use crate::node::reports::ReportSchedule;
use crate::requeue::Jitter;
use crate::time::Mono;

const EVERY: Duration = Duration::from_secs(300);

fn at(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

/// The second of the next report after one that was told at 1000.
fn next(mut reports: ReportSchedule, changed: bool, bits: u32) -> u64 {
    reports.reported(changed, at(1000), Jitter::from_bits(bits));
    (1000..).find(|second| reports.are_due(at(*second))).unwrap()
}

#[test]
fn an_unchanged_status_is_reported_periodically_and_shifted_after_a_change() {
    let fresh = ReportSchedule::every(EVERY);
    assert!(fresh.are_due(at(0)));
    let mut reported = fresh;
    reported.reported(true, at(0), Jitter::from_bits(0));
    let rows = [
        ("first", fresh, false, 0, 1150),
        ("first, middle draw", fresh, false, 1 << 31, 1300),
        ("nothing new", reported, false, 0, 1300),
        ("nothing new, whatever the draw", reported, false, u32::MAX, 1300),
        ("a change", reported, true, 0, 1150),
        ("a change, highest draw", reported, true, u32::MAX, 1450),
    ];
    for (name, reports, changed, bits, expected) in rows {
        assert_eq!(next(reports, changed, bits), expected, "{name}");
    }
}

#[test]
fn a_lease_names_its_holder_and_its_owner_once_that_is_known() {
    let lasts = Duration::from_secs(40);
    assert_eq!(renewal(lasts), Duration::from_secs(10));
    let first = renewed(None, "n1", None, lasts, moment(0).wall);
    let spec = first.spec.clone().unwrap();
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_duration_seconds),
        (Some("n1"), Some(40))
    );
    assert_eq!(first.metadata.namespace.as_deref(), Some("kube-node-lease"));
    assert_eq!(first.metadata.owner_references.as_deref(), Some(&[][..]));
    let mut there = first;
    there.metadata.resource_version = Some("7".to_owned());
    let second = renewed(Some(&there), "n1", Some("uid"), lasts, moment(10).wall);
    assert_eq!(second.metadata.resource_version, there.metadata.resource_version);
    assert_eq!(second.spec.as_ref().unwrap().renew_time.as_ref().unwrap().0, moment(10).wall);
    let owners = second.metadata.owner_references.as_ref().unwrap();
    assert_eq!((owners.len(), owners[0].kind.as_str(), owners[0].uid.as_str()), (1, "Node", "uid"));
    let third = renewed(Some(&second), "n1", Some("uid"), lasts, moment(20).wall);
    assert_eq!(third.metadata.owner_references, second.metadata.owner_references);
}
