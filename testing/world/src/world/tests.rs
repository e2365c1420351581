//! Incarnations of an agent: where the switch kills them, what outlives them, and that a seed repeats them.

use std::collections::BTreeSet;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use oarsman_cri::Runtime;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::*;
use crate::fixtures::{SECOND, container, run, sandbox, world};
use crate::rng::Probability;
use crate::trace::{CallOutcome, TraceEntry};

/// Runs an incarnation until the switch kills it.
async fn run_until_killed(world: &World, agent: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = JoinSet::new();
    tasks.spawn(agent);
    timeout(3_600 * SECOND, world.kill_switch.fired()).await.unwrap();
    tasks.shutdown().await;
}

/// Makes one sandbox after the other.
async fn make_sandboxes(runtime: Arc<dyn Runtime>) {
    for attempt in 0.. {
        runtime.run_pod_sandbox(sandbox("pod", attempt)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_call_has_its_effect_or_not_and_is_not_answered() {
    let mut seen = BTreeSet::new();
    for seed in 0..20 {
        let world = world(seed, FaultPlan::quiet());
        let runtime = world.runtime_for(1);
        world.kill_switch.arm(4);
        run_until_killed(&world, make_sandboxes(runtime)).await;
        let made = world.runtime.list_pod_sandboxes(None).await.unwrap().len();
        let answered = |record: &crate::trace::TraceRecord| {
            matches!(&record.entry, TraceEntry::Answered { outcome: CallOutcome::Fine, .. })
        };
        assert_eq!(world.trace.records().iter().filter(|record| answered(record)).count(), 3);
        seen.insert(made);
    }
    assert_eq!(seen, BTreeSet::from([3, 4]));
}

#[tokio::test(start_paused = true)]
async fn a_dead_incarnation_hangs_and_the_next_one_finds_what_is_left() {
    let world = world(1, FaultPlan::quiet());
    let first = world.runtime_for(1);
    let (_, id) = run(first.as_ref(), "pod", &["forever"]).await.unwrap();
    world.kill_switch.end();
    assert!(timeout(3_600 * SECOND, first.version()).await.is_err());
    let second = world.runtime_for(2);
    assert_eq!(second.list_containers(None).await.unwrap()[0].id, id);
    assert!(timeout(3_600 * SECOND, first.version()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_dead_agent_may_take_effect_in_the_next_incarnation() {
    let world = world(4, FaultPlan { latency: SECOND, ..FaultPlan::quiet() });
    let runtime = world.runtime_for(1);
    let agent = tokio::spawn(async move { make_sandboxes(runtime).await });
    tokio::task::yield_now().await;
    agent.abort();
    let second = world.runtime_for(2);
    assert_eq!(world.runtime.list_pod_sandboxes(None).await.unwrap().len(), 0);
    sleep(SECOND).await;
    assert_eq!(second.list_pod_sandboxes(None).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_runtime_does_not_prevent_the_kill_at_the_last_call() {
    for seed in 0..10 {
        let world = world(seed, FaultPlan { latency: SECOND, ..FaultPlan::quiet() });
        let runtime = world.runtime_for(1);
        world.kill_switch.arm(1);
        let agent = tokio::spawn(async move { make_sandboxes(runtime).await });
        tokio::task::yield_now().await;
        crate::link::RemoteService::restart(&world.runtime, SECOND, Probability::NEVER);
        timeout(60 * SECOND, world.kill_switch.fired()).await.unwrap();
        agent.abort();
    }
}

/// Keeps one pod running, without any decisions: makes all kinds of calls.
async fn keep_pod_running(runtime: Arc<dyn Runtime>, pod: String) {
    for attempt in 0.. {
        if let Ok(sandbox) = runtime.run_pod_sandbox(sandbox(&pod, attempt)).await {
            let script = ["out:hello", "sleep:3s", "exit:1"];
            let id = runtime.create_container(container(&sandbox, attempt, &script)).await;
            let id = id.unwrap_or_default();
            drop(runtime.start_container(&id).await);
            sleep(2 * SECOND).await;
            drop(runtime.container_status(&id).await);
            drop(runtime.stop_container(&id, 5 * SECOND).await);
            drop(runtime.remove_pod_sandbox(&sandbox).await);
        }
        drop(runtime.list_containers(None).await);
        sleep(SECOND).await;
    }
}

/// Three incarnations of an agent with three pods in a world with faults, and the hash of their trace.
fn rough_run(seed: u64) -> (u64, usize) {
    let plan = FaultPlan::rough(Duration::from_secs(1_800));
    let lives = simulate(seed, plan, async |world| {
        world.runtime.preload(crate::runtime::ImageSource::script(crate::fixtures::IMAGE));
        for incarnation in 1..=3 {
            let runtime = world.runtime_for(incarnation);
            world.kill_switch.arm(50 * u64::from(incarnation));
            run_until_killed(&world, async move {
                let pods = ["a", "b", "c"]
                    .map(|pod| keep_pod_running(Arc::clone(&runtime), pod.to_owned()));
                futures::future::join_all(pods).await;
                pending::<()>().await;
            })
            .await;
        }
        (world.trace.hash(), world.trace.len())
    });
    lives.unwrap()
}

#[test]
fn a_seed_repeats_its_trace_and_another_seed_gives_another() {
    let mut hashes = BTreeSet::new();
    for seed in 0..20 {
        let (hash, length) = rough_run(seed);
        assert!(length > 300, "{length}");
        assert_eq!(rough_run(seed), (hash, length), "seed {seed}");
        hashes.insert(hash);
    }
    assert_eq!(hashes.len(), 20);
}
