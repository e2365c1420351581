//! What an agent gets from calls with faults, and their effects in the runtime.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use oarsman_cri::{ErrorCode, Runtime};
use oarsman_cri_types::v1::{ContainerState, PullImageRequest};
use tokio::time::{Instant, sleep};

use crate::World;
use crate::faults::{EventFaults, FaultPlan, NameReservation, RestartOutage};
use crate::fixtures::{DEADLINE, SECOND, container, run, sandbox, state, world};
use crate::link::RemoteService;
use crate::rng::Probability;
use crate::runtime::{ImageAccess, ImageSource};

const QUIET: FaultPlan = FaultPlan::quiet();

/// Runs a sandbox under the plan, and returns the error's code, the time it took, and how many sandboxes there are then.
async fn run_under(plan: FaultPlan) -> (World, ErrorCode, Duration, usize) {
    let world = world(1, plan);
    let begun = Instant::now();
    let error = world.runtime_for(1).run_pod_sandbox(sandbox("pod", 0)).await.unwrap_err();
    let count = world.runtime.list_pod_sandboxes(None).await.map_or(0, |list| list.len());
    (world, error.code(), begun.elapsed(), count)
}

async fn count(world: &World) -> usize {
    world.runtime.list_pod_sandboxes(None).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn failures_say_their_code_at_once_and_have_no_effect() {
    for (plan, wanted) in [
        (FaultPlan { unavailable: Probability::ALWAYS, ..QUIET }, ErrorCode::Unavailable),
        (FaultPlan { unknown: Probability::ALWAYS, ..QUIET }, ErrorCode::Unknown),
    ] {
        let (_, code, time, count) = run_under(plan).await;
        assert_eq!((code, time, count), (wanted, Duration::ZERO, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_a_timeout_at_the_deadline_with_or_without_effect() {
    for (plan, effect) in [
        (FaultPlan { silent: Probability::ALWAYS, ..QUIET }, 1),
        (FaultPlan { hang: Probability::ALWAYS, ..QUIET }, 0),
    ] {
        let (world, code, time, seen) = run_under(plan).await;
        // Making a sandbox has twice the time of other calls.
        assert_eq!((code, time, seen), (ErrorCode::DeadlineExceeded, 2 * DEADLINE, effect));
        sleep(2 * DEADLINE).await;
        assert_eq!(count(&world).await, effect, "nothing comes later");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_call_takes_effect_after_its_caller_gave_up() {
    let plan = FaultPlan { late: (Probability::ALWAYS, 30 * SECOND), ..QUIET };
    let (world, code, _, seen) = run_under(plan).await;
    assert_eq!((code, seen), (ErrorCode::DeadlineExceeded, 0));
    sleep(31 * SECOND).await;
    assert_eq!(count(&world).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_without_a_deadline_breaks_in_the_end() {
    let world = world(1, FaultPlan { hang: Probability::ALWAYS, ..QUIET });
    let begun = Instant::now();
    let error = world.runtime_for(1).pull_image(PullImageRequest::default()).await.unwrap_err();
    assert_eq!((error.code(), begun.elapsed()), (ErrorCode::Unknown, 600 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_may_leave_its_name_reserved_for_a_while() {
    let reserved = NameReservation { longest: 60 * SECOND, until_restart: Probability::NEVER };
    let plan = FaultPlan { stale_name: Probability::ALWAYS, reserved, ..QUIET };
    let mut codes = BTreeSet::new();
    for seed in 0..10 {
        let world = world(seed, plan);
        let runtime = world.runtime_for(1);
        let run = |attempt| runtime.run_pod_sandbox(sandbox("pod", attempt));
        codes.insert(run(0).await.unwrap_err().code().to_string());
        assert_eq!(count(&world).await, 0);
        world.faults.change(QUIET);
        let taken = run(0).await.unwrap_err();
        assert!(taken.message().contains("is reserved for"), "{taken}");
        run(1).await.unwrap();
        sleep(61 * SECOND).await;
        run(0).await.unwrap();
    }
    assert_eq!(codes, BTreeSet::from(["deadline exceeded".to_owned(), "unknown".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_name_may_stay_reserved_until_the_runtime_restarts() {
    let world = world(1, QUIET);
    let runtime = world.runtime_for(1);
    let pod = runtime.run_pod_sandbox(sandbox("pod", 0)).await.unwrap();
    let reserved = NameReservation { longest: SECOND, until_restart: Probability::ALWAYS };
    world.faults.change(FaultPlan { stale_name: Probability::ALWAYS, reserved, ..QUIET });
    let create = || runtime.create_container(container(&pod, 0, &["forever"]));
    create().await.unwrap_err();
    world.faults.change(QUIET);
    sleep(3_600 * SECOND).await;
    create().await.unwrap_err();
    world.runtime.restart(SECOND, Probability::NEVER);
    sleep(SECOND).await;
    create().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_runtime_restarts_while_its_containers_run_on() {
    let world = world(1, QUIET);
    let runtime = world.runtime_for(1);
    let mut events = runtime.container_events().await.unwrap();
    let (_, id) = run(runtime.as_ref(), "pod", &["sleep:1m", "exit:3"]).await.unwrap();
    let outage = RestartOutage { longest: 10 * SECOND, forgets: Probability::NEVER };
    world.faults.change(FaultPlan { restart: Probability::ALWAYS, outage, ..QUIET });
    assert_eq!(runtime.version().await.unwrap_err().code(), ErrorCode::Unavailable);
    world.faults.change(QUIET);
    assert_eq!(runtime.version().await.unwrap_err().code(), ErrorCode::Unavailable, "still away");
    sleep(11 * SECOND).await;
    assert_eq!(state(runtime.as_ref(), &id).await, ContainerState::ContainerRunning);
    while let Some(event) = events.next().await {
        event.unwrap();
    }
    sleep(60 * SECOND).await;
    assert_eq!(runtime.container_status(&id).await.unwrap().exit_code, 3);
}

#[tokio::test(start_paused = true)]
async fn calls_under_way_break_when_the_runtime_goes_away() {
    let world = world(1, QUIET);
    let runtime = world.runtime_for(1);
    let script = ["on-term:ignore", "forever"];
    let (_, id) = run(runtime.as_ref(), "pod", &script).await.unwrap();
    let (far, stopped) = (world.runtime_for(1), id.clone());
    let stop = tokio::spawn(async move { far.stop_container(&stopped, 30 * SECOND).await });
    sleep(SECOND).await;
    world.runtime.restart(SECOND, Probability::NEVER);
    assert_eq!(stop.await.unwrap().unwrap_err().code(), ErrorCode::Unavailable);
    sleep(60 * SECOND).await;
    assert_eq!(state(runtime.as_ref(), &id).await, ContainerState::ContainerRunning, "not killed");
}

#[tokio::test(start_paused = true)]
async fn what_the_runtime_forgot_is_unknown_until_it_is_stopped() {
    let world = world(1, QUIET);
    let runtime = world.runtime_for(1);
    let (pod, running) = run(runtime.as_ref(), "pod", &["forever"]).await.unwrap();
    let created = runtime.create_container(container(&pod, 1, &["forever"])).await.unwrap();
    world.runtime.restart(Duration::ZERO, Probability::ALWAYS);
    for id in [running, created] {
        assert_eq!(state(runtime.as_ref(), &id).await, ContainerState::ContainerUnknown);
        runtime.start_container(&id).await.unwrap_err();
        runtime.stop_container(&id, 30 * SECOND).await.unwrap();
        let status = runtime.container_status(&id).await.unwrap();
        assert_eq!(status.state(), ContainerState::ContainerExited);
        assert_eq!((status.exit_code, status.reason.as_str()), (255, "Unknown"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_takes_effect_though_its_caller_is_gone_and_a_pull_does_not() {
    let world = world(3, FaultPlan { latency: SECOND, ..QUIET });
    let access = ImageAccess { credentials: None, time: SECOND };
    world.runtime.publish(ImageSource::script("registry.world/other:1"), access);
    let runtime = world.runtime_for(1);
    let mut pull = PullImageRequest::default();
    pull.image.get_or_insert_default().image = "registry.world/other:1".to_owned();
    let calls = tokio::spawn(async move {
        tokio::join!(runtime.run_pod_sandbox(sandbox("pod", 0)), runtime.pull_image(pull)).0
    });
    tokio::task::yield_now().await;
    calls.abort();
    sleep(10 * SECOND).await;
    assert_eq!(count(&world).await, 1);
    assert_eq!(world.runtime.list_images(None).await.unwrap().len(), 1, "only the preloaded one");
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_stop_has_sent_the_signal_but_does_not_kill() {
    let world = world(1, QUIET);
    let runtime = world.runtime_for(1);
    let script = ["on-term:out:asked", "forever"];
    let (_, id) = run(runtime.as_ref(), "pod", &script).await.unwrap();
    let stopped = id.clone();
    let stop = tokio::spawn(async move { runtime.stop_container(&stopped, 30 * SECOND).await });
    sleep(SECOND).await;
    stop.abort();
    sleep(60 * SECOND).await;
    assert_eq!(state(&world.runtime, &id).await, ContainerState::ContainerRunning);
    let log = world.files.read("/logs/pod/main.log".as_ref()).unwrap();
    assert!(String::from_utf8(log).unwrap().ends_with("stdout F asked\n"));
}

/// How many events of one pod's two creations arrive within a minute.
async fn delivered_events(events: EventFaults) -> usize {
    let world = world(1, FaultPlan { events, ..QUIET });
    let runtime = world.runtime_for(1);
    let stream = runtime.container_events().await.unwrap();
    runtime.run_pod_sandbox(sandbox("pod", 0)).await.unwrap();
    let minute = sleep(60 * SECOND);
    stream.take_until(minute).count().await
}

#[tokio::test(start_paused = true)]
async fn events_are_lost_doubled_and_late() {
    let none = QUIET.events;
    assert_eq!(delivered_events(none).await, 2);
    assert_eq!(delivered_events(EventFaults { lose: Probability::ALWAYS, ..none }).await, 0);
    assert_eq!(delivered_events(EventFaults { double: Probability::ALWAYS, ..none }).await, 4);
    let late = EventFaults { delay: Probability::ALWAYS, longest_delay: 30 * SECOND, ..none };
    assert_eq!(delivered_events(late).await, 2);
    let too_late = EventFaults { longest_delay: 86_400 * SECOND, ..late };
    assert_eq!(delivered_events(too_late).await, 0);
}

#[tokio::test(start_paused = true)]
async fn stale_events_come_again_on_subscription() {
    let world = world(1, QUIET);
    let runtime = world.runtime_for(1);
    let _first = runtime.container_events().await.unwrap();
    runtime.run_pod_sandbox(sandbox("pod", 0)).await.unwrap();
    sleep(240 * SECOND).await;
    for (replay, old) in [(Probability::NEVER, 0), (Probability::ALWAYS, 2)] {
        world.faults.change(FaultPlan { events: EventFaults { replay, ..QUIET.events }, ..QUIET });
        let stream = runtime.container_events().await.unwrap();
        assert_eq!(stream.take_until(sleep(SECOND)).count().await, old);
    }
}
