//! What holds whatever the runtime says, over whole lives.

use proptest::prelude::*;

use super::*;
use crate::status::merge::{differs, merge};
use crate::status::phase::Phase;
use crate::termination_message::POD_LIMIT;

/// One look at a pod: what each of its containers shows, whether there is a new sandbox, and how it stands.
#[derive(Clone, Debug)]
struct Observation {
    containers: Vec<(usize, u8, i32)>,
    new_sandbox: bool,
    termination: Option<TerminationStage>,
    failure: bool,
    start_errors: bool,
    termination_messages: usize,
}

const NAMES: [&str; 4] = ["init", "side", "app", "web"];

fn any_pod() -> impl Strategy<Value = Pod> {
    let policy = prop::sample::select(vec!["Always", "OnFailure", "Never"]);
    (policy, any::<bool>(), any::<bool>()).prop_map(|(policy, init, deleting)| {
        let pod = pod().policy(policy).regular("app").regular("web");
        let pod = if init { pod.init("init").sidecar("side") } else { pod };
        let pod = if deleting { pod.deleting(30) } else { pod };
        pod.build()
    })
}

fn any_look() -> impl Strategy<Value = Observation> {
    let termination = prop_oneof![
        6 => Just(None),
        1 => Just(Some(TerminationStage::Terminating)),
        1 => Just(Some(TerminationStage::Stopped)),
        1 => Just(Some(TerminationStage::Released)),
    ];
    let containers = prop::collection::vec((0..NAMES.len(), 0..5_u8, 0..2_i32), 0..6);
    let rare = || prop::bool::weighted(0.1);
    (containers, rare(), termination, rare(), any::<bool>(), 0..20_000_usize).prop_map(
        |(containers, new_sandbox, termination, failure, start_errors, termination_messages)| {
            Observation {
                containers,
                new_sandbox,
                termination,
                failure,
                start_errors,
                termination_messages,
            }
        },
    )
}

fn held(pod: &Pod, look: &Observation) -> PodView {
    let start = view(pod).sandbox();
    let start = if look.new_sandbox { start.dead_sandbox() } else { start };
    let add = |view: ViewBuilder, (name, state, code): &(usize, u8, i32)| match state {
        0 => view.created(NAMES[*name]),
        1 => view.unknown(NAMES[*name]),
        2 => view.exited(NAMES[*name], *code),
        _ => view.running(NAMES[*name]),
    };
    look.containers.iter().fold(start, add).build()
}

/// The statuses of a whole life, each made with the one before in mind.
fn life(pod: &Pod, looks: &[Observation]) -> Vec<PodStatus> {
    let mut statuses: Vec<PodStatus> = Vec::new();
    for look in looks {
        let mut now = status_fixture(pod.clone(), |view| view);
        now.view = held(pod, look);
        now.previous = statuses.last().cloned();
        now.termination = look.termination;
        now.second = 50 + i64::try_from(statuses.len()).unwrap();
        now.failure = look.failure.then(|| PodFailure::disrupted("Evicted", "why"));
        for container in &now.view.containers {
            now.termination_messages
                .insert(container.id.clone(), "x".repeat(look.termination_messages));
        }
        if look.start_errors {
            now = NAMES
                .into_iter()
                .fold(now, |now, name| now.failing(name, StartReason::CrashLoopBackOff));
        }
        statuses.push(now.status());
    }
    statuses
}

fn is_true(status: &PodStatus, kind: &str) -> bool {
    condition(status, kind).is_some_and(|condition| condition.status == "True")
}

fn message_bytes(status: &PodStatus) -> usize {
    let ends = all(status).flat_map(|container| [container.ended(), container.ended_before()]);
    ends.flatten().filter_map(|end| end.message.as_ref()).map(String::len).sum()
}

/// Whether a pod may go from one phase to another: from a terminal one to no other.
///
/// From Running back to Pending it may: a pod with init containers that gets a new sandbox begins anew.
fn is_allowed_transition(old: Option<Phase>, new: Phase) -> bool {
    old.is_none_or(|old| !old.is_terminal() || old == new)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn phases_only_go_forward_whatever_the_runtime_reports(
        pod in any_pod(),
        looks in prop::collection::vec(any_look(), 1..6),
    ) {
        let statuses = life(&pod, &looks);
        for (old, new) in statuses.iter().zip(&statuses[1..]) {
            let phase = Phase::of(new).unwrap();
            prop_assert!(is_allowed_transition(Phase::of(old), phase));
            prop_assert_eq!(&old.start_time, &new.start_time);
            for before in all(old) {
                let after = container(new, &before.name);
                prop_assert!(before.restart_count <= after.restart_count, "{}", before.name);
            }
        }
    }

    #[test]
    fn a_ready_pod_runs_and_so_do_its_containers(
        pod in any_pod(),
        looks in prop::collection::vec(any_look(), 1..4),
    ) {
        for status in life(&pod, &looks) {
            let ready = is_true(&status, "Ready");
            prop_assert!(!ready || is_true(&status, "ContainersReady"));
            prop_assert!(!ready || status.phase.as_deref() == Some("Running"));
            prop_assert!(!ready || status.container_statuses.iter().flatten().all(ContainerStatusExt::is_running));
        }
    }

    #[test]
    fn every_container_is_in_exactly_one_state_and_messages_are_bounded(
        pod in any_pod(),
        looks in prop::collection::vec(any_look(), 1..4),
    ) {
        for status in life(&pod, &looks) {
            for container in all(&status) {
                let state = container.state.clone().unwrap();
                let states = [state.running.is_some(), state.waiting.is_some(), state.terminated.is_some()];
                prop_assert_eq!(states.iter().filter(|is| **is).count(), 1);
            }
            // One share for the present and one for the past of each container.
            prop_assert!(message_bytes(&status) <= 2 * POD_LIMIT);
        }
    }

    #[test]
    fn saying_the_same_again_is_no_news(pod in any_pod(), look in any_look()) {
        let statuses = life(&pod, &[look.clone(), look.clone(), look]);
        prop_assert!(!differs(&statuses[1], &statuses[2]));
    }

    #[test]
    fn what_others_see_ends_once_and_not_while_anything_may_run(
        pod in any_pod(),
        looks in prop::collection::vec(any_look(), 1..6),
    ) {
        let mut seen = PodStatus::default();
        for (status, look) in life(&pod, &looks).iter().zip(&looks) {
            let quiet = held(&pod, look).possibly_running().next().is_none();
            let next = merge(&seen, status, quiet, at(99));
            let phase = Phase::of(&next).unwrap();
            prop_assert!(is_allowed_transition(Phase::of(&seen), phase));
            prop_assert!(quiet || !phase.is_terminal() || Phase::of(&seen) == Some(phase));
            prop_assert!(!phase.is_terminal() || !is_true(&next, "Ready"));
            seen = next;
        }
    }
}
