//! Slots for pulls and the line in front of them.

use proptest::prelude::*;

use super::*;

fn asked(ledger: &mut Ledger, uid: &str) -> (Ticket, bool) {
    match ledger.ask_pull(&uid.into()) {
        Turn::Now(ticket) => (ticket, true),
        Turn::Later(ticket) => (ticket, false),
    }
}

#[test]
fn only_so_many_pull_at_one_time_and_the_first_to_ask_is_the_first_to_go() {
    for slots in [1, 2, 5] {
        let mut ledger = Ledger::new(NonZeroUsize::new(slots));
        let tickets: Vec<_> = (0..8).map(|i| asked(&mut ledger, &i.to_string())).collect();
        let at_once = tickets.iter().filter(|(_, now)| *now).count();
        assert_eq!(at_once, slots);
        let mut order: Vec<Ticket> = Vec::new();
        for (ticket, _) in &tickets {
            order.extend(ledger.end_pull(*ticket));
        }
        let waited: Vec<Ticket> = tickets.iter().filter(|(_, now)| !now).map(|t| t.0).collect();
        assert_eq!(order, waited, "{slots} slots");
        assert!(ledger.is_empty());
    }
}

#[test]
fn without_a_limit_nobody_waits() {
    let mut ledger = Ledger::new(None);
    assert!((0..100).all(|_| asked(&mut ledger, "1").1));
}

#[test]
fn who_no_longer_wants_to_pull_leaves_the_line() {
    let mut ledger = Ledger::new(NonZeroUsize::new(1));
    let (first, _) = asked(&mut ledger, "1");
    let (second, _) = asked(&mut ledger, "2");
    let (third, _) = asked(&mut ledger, "3");
    assert_eq!(ledger.end_pull(second), []);
    assert_eq!(ledger.end_pull(second), [], "said twice");
    assert_eq!(ledger.end_pull(first), [third]);
}

#[test]
fn a_worker_that_is_gone_holds_nothing() {
    let mut ledger = Ledger::new(NonZeroUsize::new(2));
    asked(&mut ledger, "1");
    asked(&mut ledger, "2");
    let (third, _) = asked(&mut ledger, "3");
    asked(&mut ledger, "1");
    let (fifth, _) = asked(&mut ledger, "5");
    assert_eq!(ledger.worker_gone(&"1".into()), [third], "its slot and its place in line");
    assert_eq!(ledger.worker_gone(&"2".into()), [fifth]);
}

proptest! {
    #[test]
    fn slots_are_never_overdrawn_and_never_idle_while_somebody_waits(
        slots in 1usize..4,
        doings in proptest::collection::vec((0u8..4, 0usize..20), 0..60),
    ) {
        let mut ledger = Ledger::new(NonZeroUsize::new(slots));
        let (mut pulling, mut waiting): (Vec<Ticket>, Vec<Ticket>) = (Vec::new(), Vec::new());
        for (what, pick) in doings {
            let uid = PodUid::from((pick % 3).to_string());
            let all: Vec<Ticket> = pulling.iter().chain(&waiting).copied().collect();
            let called = match what {
                0 | 1 => match ledger.ask_pull(&uid) {
                    Turn::Now(ticket) => { waiting.push(ticket); vec![ticket] }
                    Turn::Later(ticket) => { waiting.push(ticket); Vec::new() }
                },
                _ => match all.get(pick) {
                    Some(ticket) => {
                        pulling.retain(|t| t != ticket);
                        waiting.retain(|t| t != ticket);
                        ledger.end_pull(*ticket)
                    }
                    None => Vec::new(),
                },
            };
            prop_assert_eq!(&called[..], &waiting[..called.len()], "first come, first served");
            pulling.extend(waiting.drain(..called.len()));
            prop_assert!(pulling.len() <= slots);
            prop_assert!(waiting.is_empty() || pulling.len() == slots);
        }
    }
}
