//! What holds of every plan, for pods and views drawn at random.

mod drawn;
mod runtime;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::ids::ContainerId;
use crate::pod::ContainerKind;
use drawn::scene;
use runtime::{Step, carry_out, steps};

/// More plans than any drawn pod needs to come to rest.
const ROUNDS: usize = 16;

/// Containers of that name that run, or may.
fn running<'a>(scene: &'a Scene, name: &str) -> BTreeSet<&'a ContainerId> {
    scene.view.possibly_running().filter(|c| c.name == name).map(|c| &c.id).collect()
}

/// Carries plans out until there is nothing to do; gives the names that were started.
fn settle(scene: &mut Scene) -> Vec<String> {
    let mut started = Vec::new();
    for _ in 0..ROUNDS {
        let plan = scene.plan();
        if plan.is_idle() {
            return started;
        }
        started.extend(plan.start.iter().map(|start| start.name.clone()));
        carry_out(scene, &plan, &steps(&plan));
    }
    panic!("still busy after {ROUNDS} rounds: {}", scene.told());
}

proptest! {
    #[test]
    fn a_container_is_started_only_when_none_of_its_name_runs_on(scene in scene()) {
        let plan = scene.plan();
        let stopped: BTreeSet<_> = plan.stop.iter().map(|stop| &stop.id).collect();
        for start in &plan.start {
            let running = running(&scene, &start.name);
            prop_assert!(running.is_subset(&stopped), "{} runs: {}", start.name, tell(&plan));
            let times = plan.start.iter().filter(|other| other.name == start.name).count();
            prop_assert_eq!(times, 1, "{}", tell(&plan));
        }
    }

    #[test]
    fn no_name_is_both_stopped_for_good_and_started(scene in scene()) {
        let plan = scene.plan();
        for stop in plan.stop.iter().filter(|stop| !stop.restarts) {
            let started = plan.start.iter().any(|start| start.name == stop.name);
            prop_assert!(!started, "{}", tell(&plan));
        }
    }

    #[test]
    fn a_pod_that_is_over_starts_nothing_and_waits_for_nothing(scene in scene()) {
        let plan = scene.plan();
        prop_assert!(!scene.pod.is_deleting() || plan.over == Some(Over::Deleting));
        if plan.over.is_some() {
            prop_assert!(plan.start.is_empty() && plan.wait.is_empty() && plan.crashes.is_empty());
            prop_assert_eq!(plan.sandbox, SandboxStep::None);
        }
    }

    #[test]
    fn nothing_that_may_run_is_removed_before_it_is_stopped(scene in scene()) {
        let plan = scene.plan();
        for removal in &plan.remove {
            let runs = scene.view.possibly_running().any(|c| c.id == removal.id);
            let stopped = plan.stop.iter().any(|stop| stop.id == removal.id);
            prop_assert!(!runs || stopped, "{} in {}", removal.id, tell(&plan));
        }
        let ids: BTreeSet<_> = plan.remove.iter().map(|removal| &removal.id).collect();
        prop_assert_eq!(ids.len(), plan.remove.len(), "removed twice: {}", tell(&plan));
    }

    #[test]
    fn containers_start_in_a_sandbox_and_in_the_order_of_their_kinds(scene in scene()) {
        let plan = scene.plan();
        prop_assert!(plan.start.is_empty() || plan.sandbox != SandboxStep::None);
        let rank = |kind| match kind {
            ContainerKind::Ephemeral => 0,
            ContainerKind::Init | ContainerKind::Sidecar => 1,
            ContainerKind::Regular => 2,
        };
        prop_assert!(plan.start.is_sorted_by_key(|start| rank(start.kind)), "{}", tell(&plan));
        let inits = plan.start.iter().filter(|start| start.kind == ContainerKind::Init).count();
        prop_assert!(inits <= 1, "{}", tell(&plan));
    }

    #[test]
    fn plans_come_to_rest_and_start_no_container_twice(mut scene in scene()) {
        let started = settle(&mut scene);
        let names: BTreeSet<_> = started.iter().collect();
        prop_assert_eq!(names.len(), started.len(), "{:?}", started);
    }

    #[test]
    fn an_agent_killed_half_way_picks_up_without_ever_running_two_of_one_name(
        mut scene in scene(),
        cut in 0usize..12,
    ) {
        let plan = scene.plan();
        let steps = steps(&plan);
        carry_out(&mut scene, &plan, &steps[..cut.min(steps.len())]);
        scene.backoff = CrashBackoff::default();
        settle(&mut scene);
        let wanted = scene.pod.all_containers();
        for name in wanted.iter().map(|wanted| &wanted.spec.name) {
            prop_assert!(running(&scene, name).len() <= 1, "{name}");
        }
    }

    #[test]
    fn a_pod_that_is_over_is_quiet_when_its_plan_is_carried_out(mut scene in scene()) {
        settle(&mut scene);
        if scene.plan().over.is_some() {
            prop_assert!(scene.view.is_quiet());
        }
    }

    #[test]
    fn what_a_stop_waits_for_is_stopped_too_and_never_in_a_circle(scene in scene()) {
        let stop = teardown(Some(&scene.pod), &scene.view, None).stop;
        let mut ended = BTreeSet::new();
        for _ in 0..stop.len() {
            let turn = stop.iter().filter(|s| s.after.iter().all(|id| ended.contains(id)));
            ended = turn.map(|stop| stop.id.clone()).collect();
        }
        prop_assert_eq!(ended.len(), stop.len());
    }

    #[test]
    fn restart_counts_only_grow(mut scene in scene()) {
        let plan = scene.plan();
        for start in &plan.start {
            let held = scene.view.containers.iter().filter(|c| c.name == start.name);
            let highest = held.map(|c| c.label.restart_count).max();
            match start.restart_count {
                RestartCount::Known(count) => prop_assert!(highest.is_none_or(|old| count > old)),
                RestartCount::FromLogs => prop_assert_eq!(highest, None),
            }
        }
        let steps: Vec<Step> = steps(&plan);
        carry_out(&mut scene, &plan, &steps);
        for start in &plan.start {
            let newest = scene.view.newest(&start.name).map(|c| &c.state);
            prop_assert!(newest.is_some_and(|state| state.exit().is_none_or(|exit| exit.code == 0)));
        }
    }
}
