//! Facts about dead containers and sandboxes, and what never goes.

use proptest::prelude::*;

use super::*;
use crate::fixture::{ViewBuilder, at, pod, view};

/// What the runtime holds of a pod with that UID. Containers are made one second after the other.
fn of(uid: &str) -> ViewBuilder {
    let pod = pod().edit(|pod| pod.metadata.uid = Some(uid.to_owned()));
    view(&pod.regular("a").regular("b").build()).sandbox()
}

fn uids(uids: &[&str]) -> BTreeSet<PodUid> {
    uids.iter().map(|uid| PodUid::from(*uid)).collect()
}

/// What goes at second 100, as `pod/container`, when all sources have spoken.
fn removed(views: &[PodView], kept: &[&str], policy: ContainerGcPolicy) -> Vec<String> {
    let kept = uids(kept);
    let input = ContainerGcInput { views, kept: &kept, sources_ready: true, now: at(100) };
    containers_to_remove(&input, &policy)
        .iter()
        .map(|dead| format!("{}/{}", dead.pod, dead.id))
        .collect()
}

#[test]
fn one_dead_container_of_each_name_is_kept() {
    let view =
        of("p").exited("a", 1).exited("a", 1).exited("b", 0).exited("a", 1).running("a").build();
    assert_eq!(removed(&[view], &["p"], ContainerGcPolicy::default()), ["p/a-0", "p/a-1"]);
}

#[test]
fn all_dead_containers_of_a_deleted_pod_are_removed_once_all_sources_are_ready() {
    let views = [of("p").exited("a", 0).exited("a", 0).running("a").created("b").build()];
    assert_eq!(removed(&views, &[], ContainerGcPolicy::default()), ["p/b-0", "p/a-0", "p/a-1"]);
    let kept = BTreeSet::new();
    let early = ContainerGcInput { views: &views, kept: &kept, sources_ready: false, now: at(100) };
    let ids: Vec<_> = containers_to_remove(&early, &ContainerGcPolicy::default())
        .into_iter()
        .map(|dead| dead.id)
        .collect();
    assert_eq!(ids, [ContainerId::from("a-0")], "until then it counts as a pod that is there");
}

#[test]
fn created_and_unknown_containers_are_removed_once_a_newer_one_exists() {
    let start = || of("p").exited("a", 0);
    let rows = [("created", start().created("a")), ("unknown", start().unknown("a"))];
    for (word, newest) in rows {
        let passed_over = newest.clone().running("a");
        let none: [&str; 0] = [];
        assert_eq!(
            removed(&[newest.build()], &["p"], ContainerGcPolicy::default()),
            none,
            "{word}"
        );
        assert_eq!(
            removed(&[passed_over.build()], &["p"], ContainerGcPolicy::default()),
            ["p/a-1"],
            "{word}"
        );
    }
}

#[test]
fn young_containers_stay_whatever_the_limits() {
    let view = of("p").exited("a", 0).exited("a", 0).build();
    let age_of_the_older = Duration::from_secs(99);
    let policy =
        ContainerGcPolicy { per_container: Some(0), min_age: age_of_the_older, total: Some(0) };
    assert_eq!(removed(&[view], &[], policy), ["p/a-0"]);
}

#[test]
fn a_limit_for_the_node_takes_an_equal_share_first_and_the_oldest_then() {
    let p = of("p").running("b").exited("a", 0).exited("a", 0).exited("a", 0).build();
    let q = of("q").exited("a", 0).build();
    let views = [p, q];
    let rows: [(usize, &[&str]); 5] = [
        (4, &[]),
        (3, &["p/a-0", "p/a-1"]),
        (2, &["p/a-0", "p/a-1"]),
        (1, &["p/a-0", "p/a-1", "q/a-0"]),
        (0, &["p/a-0", "p/a-1", "q/a-0", "p/a-2"]),
    ];
    for (total, expected) in rows {
        let policy = ContainerGcPolicy {
            per_container: None,
            total: Some(total),
            ..ContainerGcPolicy::default()
        };
        assert_eq!(removed(&views, &["p", "q"], policy), expected, "total {total}");
    }
}

#[test]
fn a_negative_or_missing_limit_keeps_all_and_none_keeps_the_newest() {
    let policy = |per_container| ContainerGcPolicy { per_container, ..Default::default() };
    for (limit, kept) in [(None, usize::MAX), (Some(0), 1), (Some(1), 1), (Some(3), 3)] {
        assert_eq!(policy(limit).kept_of_container(), kept, "{limit:?}");
        assert_eq!(policy(limit).of_pod().per_container, Some(kept), "{limit:?}");
    }
    assert!(!policy(Some(2)).concerns_node());
    assert!(ContainerGcPolicy { total: Some(9), ..policy(None) }.concerns_node());
    assert!(ContainerGcPolicy { min_age: Duration::from_secs(1), ..policy(None) }.concerns_node());
}

#[test]
fn of_the_node_the_oldest_go_but_never_the_newest_of_an_active_pod() {
    let p = of("p").exited("a", 0).exited("a", 0).exited("b", 0).running("b").build();
    let q = of("q").exited("a", 0).created("b").build();
    let (views, kept) = ([p, q], uids(&["p", "q"]));
    let input = ContainerGcInput { views: &views, kept: &kept, sources_ready: true, now: at(100) };
    let second = Duration::from_secs(1);
    let policy =
        |per_container, total, min_age| ContainerGcPolicy { per_container, total, min_age };
    let rows: [(ContainerGcPolicy, &[&str]); 5] = [
        (policy(None, None, Duration::ZERO), &[]),
        (policy(Some(1), None, Duration::ZERO), &["p/a-0"]),
        (policy(Some(1), None, 100 * second), &[]),
        (policy(None, Some(2), Duration::ZERO), &["p/a-0", "q/a-0"]),
        (policy(None, Some(0), Duration::ZERO), &["p/a-0", "p/b-0", "q/a-0"]),
    ];
    for (policy, want) in rows {
        let dead = dead_on_node(&input, &policy, |uid| uid.as_str() == "p");
        let mut dead: Vec<String> =
            dead.iter().map(|dead| format!("{}/{}", dead.pod, dead.container.id)).collect();
        dead.sort();
        assert_eq!(dead, want, "{policy:?}");
    }
}

#[test]
fn what_may_run_is_stopped_before_it_is_removed() {
    let (kept, views) = (BTreeSet::new(), [of("p").exited("a", 0).unknown("a").build()]);
    let input = ContainerGcInput { views: &views, kept: &kept, sources_ready: true, now: at(9) };
    let dead = containers_to_remove(&input, &ContainerGcPolicy::default());
    let stop: Vec<_> = dead.iter().map(|dead| (dead.id.as_str(), dead.stop_first)).collect();
    assert_eq!(stop, [("a-1", true), ("a-0", false)]);
}

#[test]
fn a_sandbox_goes_when_it_is_empty_and_not_ready_and_the_newest_only_with_its_pod() {
    let ready = |ready: bool| move |sandbox: &mut crate::view::SandboxView| sandbox.ready = ready;
    let view =
        of("p").edit_sandbox(ready(false)).dead_sandbox().exited("a", 0).sandbox().dead_sandbox();
    let views = [view.build()];
    let (oldest, newest) = ("sandbox-0", "sandbox-3");
    let rows: [(&[&str], bool, &[&str]); 3] =
        [(&["p"], true, &[oldest]), (&[], false, &[oldest]), (&[], true, &[oldest, newest])];
    for (kept, sources_ready, expected) in rows {
        let kept = uids(kept);
        let input = ContainerGcInput { views: &views, kept: &kept, sources_ready, now: at(9) };
        let ids: Vec<_> =
            sandboxes_to_remove(&input).into_iter().map(|id| id.to_string()).collect();
        assert_eq!(ids, expected, "kept {kept:?}, sources ready {sources_ready}");
    }
}

fn any_views() -> impl Strategy<Value = Vec<PodView>> {
    let container = (prop::sample::select(vec!["a", "b"]), 0..4_u8);
    let pods = prop::collection::vec(prop::collection::vec(container, 0..6), 0..4);
    pods.prop_map(|pods| pods.iter().enumerate().map(|(n, words)| drawn(n, words)).collect())
}

fn drawn(pod: usize, containers: &[(&str, u8)]) -> PodView {
    let start = of(&format!("p{pod}"));
    let add = |view: ViewBuilder, (name, state): &(&str, u8)| match state {
        0 => view.running(name),
        1 => view.created(name),
        2 => view.unknown(name),
        _ => view.exited(name, 0),
    };
    containers.iter().fold(start, add).build()
}

proptest! {
    #[test]
    fn neither_the_running_nor_the_newest_dead_of_a_pod_that_is_there_goes(
        views in any_views(),
        kept in prop::collection::btree_set(0..4_usize, 0..4),
        per_container in 1..3_usize,
    ) {
        let kept: BTreeSet<PodUid> = kept.iter().map(|n| PodUid::from(format!("p{n}"))).collect();
        let input = ContainerGcInput { views: &views, kept: &kept, sources_ready: true, now: at(100) };
        let policy = ContainerGcPolicy { per_container: Some(per_container), ..ContainerGcPolicy::default() };
        for dead in containers_to_remove(&input, &policy) {
            let view = views.iter().find(|view| view.uid == dead.pod).unwrap();
            let container = view.containers.iter().find(|c| c.id == dead.id).unwrap();
            let running = matches!(container.state, ContainerState::Running { .. });
            prop_assert!(!running);
            let ended = |c: &&ContainerView| c.name == container.name && c.state.exit().is_some();
            let newest_dead = view.containers.iter().find(ended).map(|c| c.id.clone());
            prop_assert!(!kept.contains(&view.uid) || newest_dead != Some(dead.id));
        }
    }

    #[test]
    fn a_limit_for_the_node_is_kept(views in any_views(), total in 0..6_usize) {
        let kept: BTreeSet<PodUid> = views.iter().map(|view| view.uid.clone()).collect();
        let input = ContainerGcInput { views: &views, kept: &kept, sources_ready: true, now: at(100) };
        let policy = ContainerGcPolicy { total: Some(total), per_container: None, ..ContainerGcPolicy::default() };
        let garbage = containers_to_remove(&input, &policy);
        let ended = |view: &PodView| view.containers.iter().filter(|c| c.state.exit().is_some()).count();
        let all: usize = views.iter().map(ended).sum();
        let gone = garbage.iter().filter(|dead| is_ended(&views, dead)).count();
        prop_assert!(all - gone <= total);
    }
}

fn is_ended(views: &[PodView], dead: &DeadContainer) -> bool {
    let view = views.iter().find(|view| view.uid == dead.pod).unwrap();
    view.containers.iter().any(|c| c.id == dead.id && c.state.exit().is_some())
}
