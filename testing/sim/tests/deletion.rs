//! The deletion of a pod in the order of real kubelets, by the world's trace.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, Pod, PodSpec, PodStatus, Volume, VolumeMount,
};
use oarsman_agent::CoreDecisions;
use oarsman_sim::{ExternalAction, SimulationPlan, SimulationResult, invariants, run};
use oarsman_world::cluster::ClusterChange;
use oarsman_world::disk::DiskChange;
use oarsman_world::faults::FaultPlan;
use oarsman_world::trace::{ContainerTransition, SandboxTransition, TraceEntry};

/// A pod with a volume whose container takes three seconds to end after SIGTERM.
fn pod() -> Pod {
    let mut pod = Pod {
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "main".to_owned(),
                image: Some("world/script:1".to_owned()),
                image_pull_policy: Some("IfNotPresent".to_owned()),
                args: Some(vec!["on-term:sleep:3s,exit:0".to_owned(), "forever".to_owned()]),
                volume_mounts: Some(vec![VolumeMount {
                    name: "scratch".to_owned(),
                    mount_path: "/scratch".to_owned(),
                    ..VolumeMount::default()
                }]),
                ..Container::default()
            }],
            volumes: Some(vec![Volume {
                name: "scratch".to_owned(),
                empty_dir: Some(EmptyDirVolumeSource::default()),
                ..Volume::default()
            }]),
            restart_policy: Some("Always".to_owned()),
            termination_grace_period_seconds: Some(30),
            ..PodSpec::default()
        }),
        ..Pod::default()
    };
    pod.metadata.name = Some("p".to_owned());
    pod.metadata.uid = Some("uid-p".to_owned());
    pod
}

fn run_pod_to_deletion() -> SimulationResult {
    let actions = vec![
        (Duration::from_secs(1), ExternalAction::Create(pod())),
        (Duration::from_secs(60), ExternalAction::Delete { pod: "p".to_owned(), grace: Some(10) }),
    ];
    let faults = FaultPlan { latency: Duration::from_millis(5), ..FaultPlan::quiet() };
    let plan = SimulationPlan { seed: 1, faults, actions, kills: Vec::new() };
    run(&plan, Arc::new(CoreDecisions)).unwrap_or_else(|error| panic!("no event loop: {error}"))
}

/// When the trace first has such an entry.
fn when(result: &SimulationResult, what: &str, is: impl Fn(&TraceEntry) -> bool) -> Duration {
    let found = result.records.iter().find(|record| is(&record.entry));
    found.unwrap_or_else(|| panic!("{what} was never seen")).at
}

fn object(is: impl Fn(&ClusterChange) -> bool) -> impl Fn(&TraceEntry) -> bool {
    move |entry| matches!(entry, TraceEntry::Cluster { change, .. } if is(change))
}

fn disk_change(is: DiskChange) -> impl Fn(&TraceEntry) -> bool {
    move |entry| matches!(entry, TraceEntry::Disk { change, .. } if *change == is)
}

fn container(is: impl Fn(&ContainerTransition) -> bool) -> impl Fn(&TraceEntry) -> bool {
    move |entry| matches!(entry, TraceEntry::Container { change, .. } if is(change))
}

fn sandbox(is: SandboxTransition) -> impl Fn(&TraceEntry) -> bool {
    move |entry| matches!(entry, TraceEntry::Sandbox { change, .. } if *change == is)
}

fn is_terminal(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

#[test]
fn resources_are_removed_in_the_order_of_real_kubelets() {
    let result = run_pod_to_deletion();
    let terminal = |change: &ClusterChange| matches!(change, ClusterChange::Published { phase } if is_terminal(phase));
    let order = [
        (
            "deletion asked for",
            when(
                &result,
                "deletion",
                object(|change| matches!(change, ClusterChange::DeletionAsked { grace: 10 })),
            ),
        ),
        (
            "asked to end",
            when(
                &result,
                "SIGTERM",
                container(|change| *change == ContainerTransition::Signalled(15)),
            ),
        ),
        (
            "ended by itself",
            when(
                &result,
                "exit",
                container(|change| matches!(change, ContainerTransition::Exited { code: 0, .. })),
            ),
        ),
        ("sandbox and network gone", when(&result, "stop", sandbox(SandboxTransition::Stopped))),
        ("volumes gone", when(&result, "volumes", disk_change(DiskChange::VolumesReleased))),
        ("cgroup gone", when(&result, "cgroup", disk_change(DiskChange::CgroupRemoved))),
        ("terminal status", when(&result, "terminal status", object(terminal))),
        (
            "object deleted",
            when(
                &result,
                "deletion by the agent",
                object(|change| {
                    *change == ClusterChange::DeletedByAgent { terminal: true, asked: true }
                }),
            ),
        ),
        (
            "container removed",
            when(&result, "removal", container(|change| *change == ContainerTransition::Removed)),
        ),
        ("sandbox removed", when(&result, "removal", sandbox(SandboxTransition::Removed))),
    ];
    for pair in order.windows(2) {
        assert!(
            pair[0].1 <= pair[1].1,
            "{} ({:?}) comes after {} ({:?})",
            pair[0].0,
            pair[0].1,
            pair[1].0,
            pair[1].1
        );
    }
    assert!(order[2].1 - order[1].1 >= Duration::from_secs(3), "it had the time it took");
    let killed = container(|change| *change == ContainerTransition::Signalled(9));
    assert!(!result.records.iter().any(|record| killed(&record.entry)), "nobody killed it");
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn until_all_resources_are_released_the_pod_is_running_and_not_ready() {
    let result = run_pod_to_deletion();
    let exit =
        when(&result, "exit", container(|c| matches!(c, ContainerTransition::Exited { .. })));
    let after: Vec<_> = result.statuses.iter().filter(|published| published.at > exit).collect();
    let (last, before) = after.split_last().expect("statuses after its end");
    assert!(!before.is_empty(), "something was said in between");
    for published in before {
        assert_eq!(published.status.phase.as_deref(), Some("Running"));
        let (ready, reason) = containers_ready(&published.status);
        assert_eq!((ready, reason), ("False", Some("ContainersNotReady")));
    }
    assert_eq!(last.status.phase.as_deref(), Some("Succeeded"));
}

fn containers_ready(status: &PodStatus) -> (&str, Option<&str>) {
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "ContainersReady");
    ready.map(|c| (c.status.as_str(), c.reason.as_deref())).unwrap_or_default()
}

#[test]
fn late_events_of_a_removed_pod_have_no_effect() {
    let result = run_pod_to_deletion();
    let gone = when(&result, "removal", sandbox(SandboxTransition::Removed));
    // The runtime's last events about it come after that; the agent does not act on them.
    let later = result.records.iter().filter(|record| record.at > gone + Duration::from_secs(5));
    let acted = later.filter(|record| {
        matches!(&record.entry, TraceEntry::Called { call, .. }
            if ["RunPodSandbox", "CreateContainer", "StopContainer", "RemoveContainer"].contains(call))
    });
    assert_eq!(acted.count(), 0);
    assert!(result.final_state.on_disk.is_empty() && result.final_state.objects.is_empty());
}
