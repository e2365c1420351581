//! Behaviour of the fake runtime that the contract suite does not cover: memory, signals, ports, and sandboxes that break.

use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    ContainerState, ContainerStatus, ExecSyncRequest, LinuxContainerConfig,
    LinuxContainerResources, Signal, UpdateContainerResourcesRequest,
};
use tokio::time::{Instant, sleep};

use super::FakeRuntime;
use crate::World;
use crate::faults::FaultPlan;
use crate::fixtures::{SECOND, container, run, sandbox, state, world};
use crate::link::RemoteService;
use crate::rng::Probability;
use crate::trace::{ContainerTransition, TraceEntry};

fn quiet() -> World {
    world(1, FaultPlan::quiet())
}

async fn ended(runtime: &FakeRuntime, id: &str) -> ContainerStatus {
    sleep(60 * SECOND).await;
    runtime.container_status(id).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn memory_above_the_limit_kills_and_a_raised_limit_lets_live() {
    let runtime = quiet().runtime;
    let pod = runtime.run_pod_sandbox(sandbox("pod", 0)).await.unwrap();
    let limit = |bytes| LinuxContainerResources {
        memory_limit_in_bytes: bytes,
        ..LinuxContainerResources::default()
    };
    for (attempt, raised, exit) in [(0, 0, (137, "OOMKilled")), (1, 8 << 20, (0, "Completed"))] {
        let mut request = container(&pod, attempt, &["alloc:3Mi", "sleep:1s", "alloc:3Mi"]);
        let linux = LinuxContainerConfig { resources: Some(limit(4 << 20)), ..Default::default() };
        request.config.get_or_insert_default().linux = Some(linux);
        let id = runtime.create_container(request).await.unwrap();
        runtime.start_container(&id).await.unwrap();
        let update = UpdateContainerResourcesRequest {
            container_id: id.clone(),
            linux: Some(limit(raised)),
            ..UpdateContainerResourcesRequest::default()
        };
        runtime.update_container_resources(update).await.unwrap();
        let status = ended(&runtime, &id).await;
        assert_eq!((status.exit_code, status.reason.as_str()), exit);
    }
}

#[tokio::test(start_paused = true)]
async fn the_stop_signal_is_the_containers_own() {
    let runtime = quiet().runtime;
    for (attempt, signal, code) in
        [(0, Signal::Sigint, 130), (1, Signal::Sigterm, 5), (2, Signal::Sigwinch, 137)]
    {
        let pod = runtime.run_pod_sandbox(sandbox("pod", attempt)).await.unwrap();
        let mut request = container(&pod, attempt, &["on-term:exit:5", "forever"]);
        request.config.get_or_insert_default().set_stop_signal(signal);
        let id = runtime.create_container(request).await.unwrap();
        runtime.start_container(&id).await.unwrap();
        runtime.stop_container(&id, 10 * SECOND).await.unwrap();
        assert_eq!(runtime.container_status(&id).await.unwrap().exit_code, code, "{signal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_script_that_cannot_be_read_or_done_fails_as_the_real_program_does() {
    let world = quiet();
    for (pod, script, code, complaint) in [
        ("unreadable", "dance", 2, "\"dance\" is not a step"),
        ("undone", "cat:/none", 1, "no such file"),
    ] {
        let (_, id) = run(&world.runtime, pod, &["out:a", script]).await.unwrap();
        assert_eq!(ended(&world.runtime, &id).await.exit_code, code);
        let log = world.files.read(format!("/logs/{pod}/main.log").as_ref()).unwrap();
        let log = String::from_utf8(log).unwrap();
        assert!(log.contains("stderr F script: ") && log.contains(complaint), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_is_open_while_its_container_runs() {
    let runtime = quiet().runtime;
    let (pod, _) = run(&runtime, "pod", &["listen:80", "sleep:10s"]).await.unwrap();
    let ip = runtime.pod_sandbox_status(&pod).await.unwrap().network.unwrap_or_default().ip;
    sleep(SECOND).await;
    assert!(runtime.listens(&ip, 80) && !runtime.listens(&ip, 81));
    assert!(!runtime.listens("10.9.9.9", 80));
    let second = runtime.create_container(container(&pod, 1, &["listen:80"])).await.unwrap();
    runtime.start_container(&second).await.unwrap();
    sleep(SECOND).await;
    assert_eq!(runtime.container_status(&second).await.unwrap().exit_code, 1, "it is in use");
    sleep(10 * SECOND).await;
    assert!(!runtime.listens(&ip, 80));
}

#[tokio::test(start_paused = true)]
async fn a_broken_sandbox_is_not_ready_and_starts_nothing() {
    let runtime = quiet().runtime;
    let (pod, running) = run(&runtime, "pod", &["forever"]).await.unwrap();
    let created = runtime.create_container(container(&pod, 1, &["forever"])).await.unwrap();
    runtime.break_sandbox(&pod);
    runtime.create_container(container(&pod, 2, &["forever"])).await.unwrap_err();
    runtime.start_container(&created).await.unwrap_err();
    let status = runtime.container_status(&created).await.unwrap();
    assert_eq!((status.exit_code, status.reason.as_str()), (128, "StartError"));
    assert_eq!(state(&runtime, &running).await, ContainerState::ContainerRunning);
}

#[tokio::test(start_paused = true)]
async fn a_containers_name_is_the_pods_and_not_the_sandboxes() {
    let runtime = quiet().runtime;
    let (first, id) = run(&runtime, "pod", &["exit:0"]).await.unwrap();
    runtime.stop_pod_sandbox(&first).await.unwrap();
    let second = runtime.run_pod_sandbox(sandbox("pod", 1)).await.unwrap();
    let again = || runtime.create_container(container(&second, 0, &["exit:0"]));
    again().await.unwrap_err();
    runtime.remove_container(&id).await.unwrap();
    again().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_command_ends_with_its_container() {
    let runtime = quiet().runtime;
    let (_, id) = run(&runtime, "pod", &["sleep:5s"]).await.unwrap();
    let begun = Instant::now();
    let cmd = vec!["/script".to_owned(), "out:begun".to_owned(), "forever".to_owned()];
    let request = ExecSyncRequest { container_id: id, cmd, timeout: 0 };
    let answer = runtime.exec_sync(request).await.unwrap();
    assert_eq!((answer.exit_code, answer.stdout.as_slice()), (137, b"begun\n".as_slice()));
    assert_eq!(begun.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_trace_has_a_containers_lifecycle() {
    let world = quiet();
    let (_, id) = run(&world.runtime, "pod", &["on-term:ignore", "forever"]).await.unwrap();
    world.runtime.stop_container(&id, 2 * SECOND).await.unwrap();
    world.runtime.remove_container(&id).await.unwrap();
    let run_state: Vec<_> = world
        .trace
        .records()
        .into_iter()
        .filter_map(|record| match record.entry {
            TraceEntry::Container { target, change } => {
                assert_eq!((target.pod_uid.as_str(), target.name.as_str()), ("uid-pod", "main"));
                Some((record.at.as_secs(), change))
            }
            _ => None,
        })
        .collect();
    let wanted = [
        (0, ContainerTransition::Created),
        (0, ContainerTransition::Started),
        (0, ContainerTransition::Signalled(15)),
        (2, ContainerTransition::Signalled(9)),
        (2, ContainerTransition::Exited { code: 137, reason: "Error" }),
        (2, ContainerTransition::Removed),
    ];
    assert_eq!(run_state, wanted);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_container_that_ends_by_itself_stays_unknown_and_has_ended_once() {
    let world = quiet();
    let (_, id) = run(&world.runtime, "pod", &["sleep:5s", "exit:3"]).await.unwrap();
    world.runtime.restart(SECOND, Probability::ALWAYS);
    let status = ended(&world.runtime, &id).await;
    assert_eq!(status.state(), ContainerState::ContainerUnknown);
    world.runtime.stop_container(&id, SECOND).await.unwrap();
    let status = world.runtime.container_status(&id).await.unwrap();
    assert_eq!((status.exit_code, status.state()), (255, ContainerState::ContainerExited));
    let exits = world.trace.records().into_iter().filter_map(|record| match record.entry {
        TraceEntry::Container { change: ContainerTransition::Exited { code, .. }, .. } => {
            Some(code)
        }
        _ => None,
    });
    assert_eq!(exits.collect::<Vec<_>>(), [3]);
}
