//! What holds of every plan, for pods and views drawn at random.

mod drawn;
mod runtime;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::ids::ContainerId;
use crate::pod::ContainerKind;
use drawn::fixture;
use runtime::{RuntimeCall, carry_out, steps};

/// More plans than any drawn pod needs to come to rest.
const ROUNDS: usize = 16;

/// Containers of that name that run, or may.
fn running<'a>(fixture: &'a ActionsFixture, name: &str) -> BTreeSet<&'a ContainerId> {
    fixture.view.possibly_running().filter(|c| c.name == name).map(|c| &c.id).collect()
}

/// Carries plans out until there is nothing to do; gives the names that were started.
fn settle(fixture: &mut ActionsFixture) -> Vec<String> {
    let mut started = Vec::new();
    for _ in 0..ROUNDS {
        let actions = fixture.actions();
        if actions.is_idle() {
            return started;
        }
        started.extend(actions.start.iter().map(|start| start.name.clone()));
        carry_out(fixture, &actions, &steps(&actions));
    }
    panic!("still busy after {ROUNDS} rounds: {}", fixture.describe_actions());
}

proptest! {
    #[test]
    fn a_container_is_started_only_when_none_of_its_name_runs_on(fixture in fixture()) {
        let actions = fixture.actions();
        let stopped: BTreeSet<_> = actions.stop.iter().map(|stop| &stop.id).collect();
        for start in &actions.start {
            let running = running(&fixture, &start.name);
            prop_assert!(running.is_subset(&stopped), "{} runs: {}", start.name, describe(&actions));
            let times = actions.start.iter().filter(|other| other.name == start.name).count();
            prop_assert_eq!(times, 1, "{}", describe(&actions));
        }
    }

    #[test]
    fn no_name_is_both_stopped_for_good_and_started(fixture in fixture()) {
        let actions = fixture.actions();
        for stop in actions.stop.iter().filter(|stop| !stop.restarts) {
            let started = actions.start.iter().any(|start| start.name == stop.name);
            prop_assert!(!started, "{}", describe(&actions));
        }
    }

    #[test]
    fn a_pod_that_is_over_starts_nothing_and_waits_for_nothing(fixture in fixture()) {
        let actions = fixture.actions();
        prop_assert!(!fixture.pod.is_deleting() || actions.end_reason == Some(PodEndReason::Deleting));
        if actions.end_reason.is_some() {
            prop_assert!(actions.start.is_empty() && actions.wait.is_empty() && actions.crashes.is_empty());
            prop_assert_eq!(actions.sandbox, SandboxAction::None);
        }
    }

    #[test]
    fn nothing_that_may_run_is_removed_before_it_is_stopped(fixture in fixture()) {
        let actions = fixture.actions();
        for removal in &actions.remove {
            let runs = fixture.view.possibly_running().any(|c| c.id == removal.id);
            let stopped = actions.stop.iter().any(|stop| stop.id == removal.id);
            prop_assert!(!runs || stopped, "{} in {}", removal.id, describe(&actions));
        }
        let ids: BTreeSet<_> = actions.remove.iter().map(|removal| &removal.id).collect();
        prop_assert_eq!(ids.len(), actions.remove.len(), "removed twice: {}", describe(&actions));
    }

    #[test]
    fn containers_start_in_a_sandbox_and_in_the_order_of_their_kinds(fixture in fixture()) {
        let actions = fixture.actions();
        prop_assert!(actions.start.is_empty() || actions.sandbox != SandboxAction::None);
        let rank = |kind| match kind {
            ContainerKind::Ephemeral => 0,
            ContainerKind::Init | ContainerKind::Sidecar => 1,
            ContainerKind::Regular => 2,
        };
        prop_assert!(actions.start.is_sorted_by_key(|start| rank(start.kind)), "{}", describe(&actions));
        let inits = actions.start.iter().filter(|start| start.kind == ContainerKind::Init).count();
        prop_assert!(inits <= 1, "{}", describe(&actions));
    }

    #[test]
    fn plans_come_to_rest_and_start_no_container_twice(mut fixture in fixture()) {
        let started = settle(&mut fixture);
        let names: BTreeSet<_> = started.iter().collect();
        prop_assert_eq!(names.len(), started.len(), "{:?}", started);
    }

    #[test]
    fn an_agent_killed_half_way_picks_up_without_ever_running_two_of_one_name(
        mut fixture in fixture(),
        cut in 0usize..12,
    ) {
        let actions = fixture.actions();
        let steps = steps(&actions);
        carry_out(&mut fixture, &actions, &steps[..cut.min(steps.len())]);
        fixture.backoff = CrashBackoff::default();
        settle(&mut fixture);
        let wanted = fixture.pod.all_containers();
        for name in wanted.iter().map(|wanted| &wanted.spec.name) {
            prop_assert!(running(&fixture, name).len() <= 1, "{name}");
        }
    }

    #[test]
    fn a_pod_that_is_over_is_quiet_when_its_plan_is_carried_out(mut fixture in fixture()) {
        settle(&mut fixture);
        if fixture.actions().end_reason.is_some() {
            prop_assert!(fixture.view.nothing_runs());
        }
    }

    #[test]
    fn what_a_stop_waits_for_is_stopped_too_and_never_in_a_circle(fixture in fixture()) {
        let stop = teardown(Some(&fixture.pod), &fixture.view, None).stop;
        let mut ended = BTreeSet::new();
        for _ in 0..stop.len() {
            let turn = stop.iter().filter(|s| s.after.iter().all(|id| ended.contains(id)));
            ended = turn.map(|stop| stop.id.clone()).collect();
        }
        prop_assert_eq!(ended.len(), stop.len());
    }

    #[test]
    fn restart_counts_only_grow(mut fixture in fixture()) {
        let actions = fixture.actions();
        for start in &actions.start {
            let held = fixture.view.containers.iter().filter(|c| c.name == start.name);
            let highest = held.map(|c| c.label.restart_count).max();
            match start.restart_count {
                RestartCount::Known(count) => prop_assert!(highest.is_none_or(|old| count > old)),
                RestartCount::FromLogs => prop_assert_eq!(highest, None),
            }
        }
        let steps: Vec<RuntimeCall> = steps(&actions);
        carry_out(&mut fixture, &actions, &steps);
        for start in &actions.start {
            let newest = fixture.view.newest(&start.name).map(|c| &c.state);
            prop_assert!(newest.is_some_and(|state| state.exit().is_none_or(|exit| exit.code == 0)));
        }
    }
}
