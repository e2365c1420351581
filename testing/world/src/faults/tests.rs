//! Faults follow their plan: every kind comes when its probability is one, and none after the end.

use super::*;

fn faults(plan: FaultPlan, seed: u64) -> Faults {
    Faults::new(WorldClock::start(), plan, Rng::new(seed))
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_quiet_plan_has_no_faults_and_takes_no_time() {
    let faults = faults(FaultPlan::quiet(), 1);
    for _ in 0..100 {
        let nothing = Fault { before: Duration::ZERO, after: Duration::ZERO, fault_kind: None };
        assert_eq!(faults.next_call(true), nothing);
        assert_eq!(faults.next_event(), EventDelivery::Delivered);
        assert!(!faults.replays_events());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_certain_happens_to_every_call() {
    let quiet = FaultPlan::quiet();
    let rows = [
        (FaultPlan { unavailable: Probability::ALWAYS, ..quiet }, "unavailable"),
        (FaultPlan { unknown: Probability::ALWAYS, ..quiet }, "unknown"),
        (FaultPlan { silent: Probability::ALWAYS, ..quiet }, "effect without answer"),
        (FaultPlan { hang: Probability::ALWAYS, ..quiet }, "hangs"),
        (FaultPlan { late: (Probability::ALWAYS, SECOND), ..quiet }, "late effect"),
        (FaultPlan { refused: Probability::ALWAYS, ..quiet }, "refused"),
        (FaultPlan { busy: (Probability::ALWAYS, SECOND), ..quiet }, "busy"),
        (FaultPlan { stale_name: Probability::ALWAYS, ..quiet }, "name left reserved"),
        (FaultPlan { restart: Probability::ALWAYS, ..quiet }, "restart"),
    ];
    for (plan, name) in rows {
        let fault_kind = faults(plan, 1).next_call(true).fault_kind;
        assert_eq!(fault_kind.map(FaultKind::name), Some(name));
    }
}

#[tokio::test(start_paused = true)]
async fn only_calls_that_make_something_leave_a_name_behind() {
    let plan = FaultPlan { stale_name: Probability::ALWAYS, ..FaultPlan::quiet() };
    assert_eq!(faults(plan, 1).next_call(false).fault_kind, None);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_fault_occurs_in_the_rough_plan_and_none_after_its_end() {
    let faults = faults(FaultPlan::rough(SECOND), 1);
    let mishaps = |faults: &Faults| -> std::collections::BTreeSet<_> {
        (0..2_000).filter_map(|_| faults.next_call(true).fault_kind.map(FaultKind::name)).collect()
    };
    let fates = |faults: &Faults| (0..200).map(|_| faults.next_event()).collect::<Vec<_>>();
    assert_eq!(mishaps(&faults).len(), 9);
    let seen = fates(&faults);
    for fate in [EventDelivery::Delivered, EventDelivery::Lost, EventDelivery::Doubled] {
        assert!(seen.contains(&fate), "{fate:?}");
    }
    assert!(seen.iter().any(|fate| matches!(fate, EventDelivery::Late(_))));
    tokio::time::sleep(SECOND).await;
    assert!(mishaps(&faults).is_empty());
    assert!(fates(&faults).iter().all(|fate| *fate == EventDelivery::Delivered));
}

#[tokio::test(start_paused = true)]
async fn slow_calls_are_slower_than_latency_and_within_bounds() {
    let latency = Duration::from_millis(10);
    let plan =
        FaultPlan { latency, slow: Probability::HALF, slowness: SECOND, ..FaultPlan::quiet() };
    let faults = faults(plan, 1);
    let waits: Vec<_> = (0..100).map(|_| faults.next_call(false).before).collect();
    assert!(waits.iter().any(|wait| *wait > latency) && waits.iter().any(|wait| *wait < latency));
    assert!(waits.iter().all(|wait| *wait <= latency + SECOND));
}

#[tokio::test(start_paused = true)]
async fn faults_depend_on_the_seed() {
    let draw = |seed| {
        let faults = faults(FaultPlan::rough(SECOND), seed);
        (0..50).map(|_| faults.next_call(true)).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}
