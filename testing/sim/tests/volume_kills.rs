//! The agent is killed at every call that it makes while the volumes of a pod are made, and while they are removed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, VolumeMount};
use oarsman_agent::CoreDecisions;
use oarsman_sim::scenario::{container, delete, pod};
use oarsman_sim::{ExternalAction, SimulationPlan, SimulationResult, invariants, run};
use oarsman_world::cluster::ClusterChange;
use oarsman_world::disk::DiskChange;
use oarsman_world::faults::FaultPlan;
use oarsman_world::trace::{ContainerTransition, TraceEntry};
use serde_json::{Value, json};

/// So many calls are enough for either, or the test has a mistake.
const MAX_CALLS: u64 = 400;
/// A volume of each kind.
fn volumes() -> Vec<(&'static str, Value)> {
    let labels = json!({ "path": "name", "fieldRef": { "fieldPath": "metadata.name" } });
    let sources =
        json!([{ "configMap": { "name": "settings" } }, { "downwardAPI": { "items": [labels] } }]);
    vec![
        ("scratch", json!({ "emptyDir": {} })),
        ("memory", json!({ "emptyDir": { "medium": "Memory" } })),
        ("host", json!({ "hostPath": { "path": "/srv" } })),
        ("settings", json!({ "configMap": { "name": "settings" } })),
        ("login", json!({ "secret": { "secretName": "login" } })),
        ("about", json!({ "downwardAPI": { "items": [labels] } })),
        ("all", json!({ "projected": { "sources": sources } })),
        ("share", json!({ "nfs": { "server": "files", "path": "/a" } })),
        ("pages", json!({ "emptyDir": { "medium": "HugePages-2Mi" } })),
        ("disk", json!({ "persistentVolumeClaim": { "claimName": "disk" } })),
        (
            "tools",
            json!({ "image": { "reference": "world/script:1", "pullPolicy": "IfNotPresent" } }),
        ),
    ]
}

/// A pod that mounts all of them, and parts of some.
fn pod_with_volumes() -> Pod {
    let mut main = container("a", &["forever"]);
    let mut mounts = Vec::new();
    for (number, (name, _)) in volumes().into_iter().enumerate() {
        let parts = if matches!(name, "scratch" | "memory" | "host") { 2 } else { 1 };
        mounts.extend((0..parts).map(|part| VolumeMount {
            name: name.to_owned(),
            mount_path: format!("/mnt/{number}/{part}"),
            sub_path: (part > 0).then(|| "deep/part".to_owned()),
            ..VolumeMount::default()
        }));
    }
    main.volume_mounts = Some(mounts);
    let mut pod = pod(vec![], vec![main], 2);
    let volumes = volumes().into_iter().map(|(name, mut source)| {
        source["name"] = name.into();
        object(source)
    });
    pod.spec.get_or_insert_default().volumes = Some(volumes.collect());
    pod
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// What the volumes are made of.
fn objects() -> Vec<ExternalAction> {
    let named =
        |name: &str| json!({ "name": name, "namespace": "default", "uid": format!("uid-{name}") });
    let claim = json!({
        "metadata": named("disk"), "spec": { "volumeName": "pv-1" }, "status": { "phase": "Bound" },
    });
    let volume = json!({
        "metadata": { "name": "pv-1" },
        "spec": { "claimRef": { "uid": "uid-disk" }, "local": { "path": "/mnt/disks/1" } },
    });
    vec![
        ExternalAction::PutConfigMap(object(
            json!({ "metadata": named("settings"), "data": { "a": "1" } }),
        )),
        ExternalAction::PutSecret(object(
            json!({ "metadata": named("login"), "stringData": { "k": "v" } }),
        )),
        ExternalAction::PutClaim(object(claim)),
        ExternalAction::PutPersistentVolume(Box::new(object(volume))),
    ]
}

/// A life in which the pod comes and goes again. An agent makes the pod; another one, which finds it deleted, removes it.
fn live(seed: u64, kills: Vec<u64>) -> SimulationResult {
    let seconds = Duration::from_secs;
    let mut actions: Vec<_> = objects().into_iter().map(|action| (seconds(0), action)).collect();
    actions.push((seconds(1), ExternalAction::Create(pod_with_volumes())));
    let deleted = ExternalAction::WhileAgentDown(Box::new(delete(Some(2))));
    actions.push((seconds(200), deleted));
    let faults = FaultPlan { latency: Duration::from_millis(5), ..FaultPlan::quiet() };
    let plan = SimulationPlan { seed, faults, actions, kills };
    run(&plan, Arc::new(CoreDecisions)).unwrap()
}

/// Where in the trace something happened first.
fn first(result: &SimulationResult, is_it: impl Fn(&TraceEntry) -> bool) -> Option<usize> {
    result.records.iter().position(|record| is_it(&record.entry))
}

fn started(entry: &TraceEntry) -> bool {
    matches!(entry, TraceEntry::Container { change: ContainerTransition::Started, .. })
}

fn deleted(entry: &TraceEntry) -> bool {
    matches!(entry, TraceEntry::Cluster { change: ClusterChange::DeletedByAgent { .. }, .. })
}

/// Whether the incarnation had not yet got so far when it was killed.
fn was_killed_before(
    result: &SimulationResult,
    incarnation: u32,
    is_it: fn(&TraceEntry) -> bool,
) -> bool {
    let stopped =
        first(result, |entry| matches!(entry, TraceEntry::AgentStopped(it) if *it == incarnation));
    let (stopped, done) = (stopped.unwrap(), first(result, is_it).unwrap());
    stopped < done
}

/// Nothing is left of the pod, it ran once, and no invariant was violated.
fn check(result: &SimulationResult, moment: &str) {
    assert_eq!(invariants::check(result), [], "{moment}");
    assert_eq!(result.records.iter().filter(|it| started(&it.entry)).count(), 1, "{moment}");
    let ending = &result.final_state;
    assert!(ending.on_disk.is_empty() && ending.objects.is_empty(), "{moment}: {ending:?}");
    assert!(ending.sandboxes.is_empty() && ending.containers.is_empty(), "{moment}: {ending:?}");
    let mut volumes = result.records.iter().filter_map(|record| match &record.entry {
        TraceEntry::Disk { change: DiskChange::VolumesMade, .. } => Some(true),
        TraceEntry::Disk { change: DiskChange::VolumesReleased, .. } => Some(false),
        _ => None,
    });
    assert_eq!(volumes.next_back(), Some(false), "{moment}: its volumes are still there");
}

#[test]
fn wherever_the_agent_is_killed_while_it_makes_volumes_the_pod_starts_once_and_all_of_it_goes() {
    let mut kills = 0;
    for call in 1..=MAX_CALLS {
        assert!(call < MAX_CALLS, "the pod never starts");
        // The seed decides whether the last call takes effect.
        let life = live(call, vec![u64::MAX, call]);
        check(&life, &format!("killed at call {call} of the first agent"));
        kills += 1;
        if !was_killed_before(&life, 1, started) {
            break;
        }
    }
    assert!(kills > 30, "killed {kills} times");
}

#[test]
fn wherever_the_agent_is_killed_while_it_removes_volumes_the_next_one_removes_the_rest() {
    let mut kills = 0;
    for call in 1..=MAX_CALLS {
        assert!(call < MAX_CALLS, "the pod never goes");
        // The seed decides whether the last call takes effect.
        let life = live(call, vec![call, u64::MAX]);
        check(&life, &format!("killed at call {call} of the second agent"));
        kills += 1;
        if !was_killed_before(&life, 2, deleted) {
            break;
        }
    }
    assert!(kills > 30, "killed {kills} times");
}
