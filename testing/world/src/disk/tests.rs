//! What the disk keeps, forgets and refuses.

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_agent::seams::DiskError;
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::view::{ContainerLabel, ContainerState, ContainerView};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::Mount;
use tokio::time::{advance, sleep};

use oarsman_core::config::Payloads;

use super::*;
use crate::World;
use crate::faults::FaultPlan;
use crate::seams::POD_LOGS;
use crate::testing::{self, SECOND};
use crate::trace::Entry;

/// The pod `a`, whose UID the common test pods of that name have too.
fn pod_a(volumes: usize) -> Pod {
    let metadata = ObjectMeta {
        name: Some("a".to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some("uid-a".to_owned()),
        ..ObjectMeta::default()
    };
    let volumes = vec![Volume { name: "data".to_owned(), ..Volume::default() }; volumes];
    let spec = PodSpec { volumes: Some(volumes), ..PodSpec::default() };
    Pod { metadata, spec: Some(spec), status: None }
}

fn a() -> PodUid {
    PodUid::from("uid-a")
}

fn status(phase: &str) -> PodStatus {
    PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
}

const LASTING: bool = true;
const SHORT: bool = false;

/// What happened on the disk.
fn changes(world: &World) -> Vec<DiskChange> {
    let records = world.trace.records();
    let change = |record: &crate::trace::Record| match record.entry {
        Entry::Disk { change, .. } => Some(change),
        _ => None,
    };
    records.iter().filter_map(change).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_prepared_is_there_until_it_is_released_each_once() {
    let world = testing::world(1, FaultPlan::quiet());
    let disk = world.disk_for_life(1);
    for _ in 0..2 {
        disk.prepare(&pod_a(1), &Payloads::new()).await.unwrap();
    }
    assert!(disk.has_cgroup(&a()).await.unwrap() && world.disk.has_volumes(&a()));
    assert_eq!(uids(disk.pods().await), BTreeSet::from([a()]));
    for _ in 0..2 {
        disk.release_volumes(&a()).await.unwrap();
        disk.release_cgroup(&a()).await.unwrap();
        assert!(!disk.has_cgroup(&a()).await.unwrap());
        disk.remove(&a()).await.unwrap();
    }
    assert_eq!(uids(disk.pods().await), BTreeSet::new());
    let seen = [
        DiskChange::DirectoryMade,
        DiskChange::CgroupMade,
        DiskChange::VolumesMade,
        DiskChange::VolumesReleased,
        DiskChange::CgroupRemoved,
        DiskChange::DirectoryRemoved,
    ];
    assert_eq!(changes(&world), seen);
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_volumes_is_given_none() {
    let world = testing::world(1, FaultPlan::quiet());
    world.disk_for_life(1).prepare(&pod_a(0), &Payloads::new()).await.unwrap();
    assert!(!world.disk.has_volumes(&a()) && world.disk.has_cgroup(&a()));
}

#[tokio::test(start_paused = true)]
async fn a_cgroup_that_vanished_is_missed_and_its_pod_still_listed() {
    let world = testing::world(1, FaultPlan::quiet());
    let disk = world.disk_for_life(1);
    disk.prepare(&pod_a(0), &Payloads::new()).await.unwrap();
    world.disk.remove_cgroup(&a());
    assert!(!disk.has_cgroup(&a()).await.unwrap());
    assert_eq!(uids(disk.pods().await), BTreeSet::from([a()]));
    assert_eq!(changes(&world).last(), Some(&DiskChange::CgroupVanished));
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_the_machine_leaves_the_last_lasting_status_and_one_of_the_agent_the_last() {
    let rows = [
        (vec![], None),
        (vec![("Pending", SHORT)], None),
        (vec![("Pending", LASTING)], Some("Pending")),
        (vec![("Pending", LASTING), ("Running", SHORT), ("Failed", SHORT)], Some("Pending")),
        (vec![("Running", SHORT), ("Failed", LASTING)], Some("Failed")),
    ];
    for (writes, left) in rows {
        let world = testing::world(1, FaultPlan::quiet());
        let disk = world.disk_for_life(1);
        for (phase, lasting) in &writes {
            disk.remember(&a(), &status(phase), *lasting).await.unwrap();
        }
        world.kill_switch.end();
        let disk = world.disk_for_life(2);
        let last = writes.last().map(|(phase, _)| status(phase));
        assert_eq!(disk.recall(&a()).await.unwrap(), last, "{writes:?}");
        world.disk.lose_unsynced();
        assert_eq!(disk.recall(&a()).await.unwrap(), left.map(status), "{writes:?}");
        disk.remove(&a()).await.unwrap();
        world.disk.lose_unsynced();
        assert_eq!(disk.recall(&a()).await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_taken_from_a_process_that_runs_and_the_attempt_is_seen() {
    let world = testing::world(1, FaultPlan::quiet());
    let disk = world.disk_for_life(1);
    disk.prepare(&pod_a(1), &Payloads::new()).await.unwrap();
    let (_, id) = testing::run(&world.runtime, "a", &["forever"]).await.unwrap();
    let before = changes(&world).len();
    let in_use = |result: Result<(), DiskError>| result.unwrap_err().why;
    assert_eq!(in_use(disk.release_volumes(&a()).await), "it is in use");
    assert_eq!(in_use(disk.release_cgroup(&a()).await), "it is in use");
    assert_eq!(in_use(disk.remove(&a()).await), "it is in use");
    let violations = [Violation::VolumesInUse, Violation::CgroupInUse, Violation::DirectoryInUse];
    assert_eq!(changes(&world)[before..], violations.map(DiskChange::Violated));
    assert!(world.disk.has_cgroup(&a()) && world.disk.has_volumes(&a()));
    world.runtime.stop_container(&id, Duration::ZERO).await.unwrap();
    assert_eq!(in_use(disk.remove(&a()).await), "it is in use");
    disk.release_volumes(&a()).await.unwrap();
    disk.release_cgroup(&a()).await.unwrap();
    disk.remove(&a()).await.unwrap();
    assert_eq!(world.disk.pods(), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_the_runtime_lost_track_of_still_uses_its_cgroup() {
    let world = testing::world(1, FaultPlan::quiet());
    let disk = world.disk_for_life(1);
    disk.prepare(&pod_a(0), &Payloads::new()).await.unwrap();
    testing::run(&world.runtime, "a", &["forever"]).await.unwrap();
    world.runtime.restart(60 * SECOND, Chance::ALWAYS);
    disk.release_cgroup(&a()).await.unwrap_err();
    assert_eq!(changes(&world).last(), Some(&DiskChange::Violated(Violation::CgroupInUse)));
}

#[tokio::test(start_paused = true)]
async fn last_words_are_in_the_file_mounted_at_the_container_s_path() {
    const PATH: &str = "/dev/termination-log";
    for (mounted, words) in [(PATH, "goodbye"), ("/elsewhere", "")] {
        let world = testing::world(1, FaultPlan::quiet());
        world.files.write("/host/words".as_ref(), b"goodbye").unwrap();
        let sandbox = world.runtime.run_pod_sandbox(testing::sandbox("a", 0)).await.unwrap();
        let mut request = testing::container(&sandbox, 0, &["forever"]);
        request.config.as_mut().unwrap().mounts.push(Mount {
            container_path: mounted.to_owned(),
            host_path: "/host/words".to_owned(),
            ..Mount::default()
        });
        let id = world.runtime.create_container(request).await.unwrap();
        let container = view(&sandbox, &id, PATH);
        assert_eq!(world.disk_for_life(1).last_words(&a(), &container).await.unwrap(), words);
    }
}

fn view(sandbox: &str, id: &str, message_path: &str) -> ContainerView {
    let label = ContainerLabel {
        termination_message_path: message_path.to_owned(),
        ..ContainerLabel::default()
    };
    ContainerView {
        id: ContainerId::from(id),
        sandbox: SandboxId::from(sandbox),
        name: "main".to_owned(),
        image: testing::IMAGE.to_owned(),
        image_ref: String::new(),
        created_at: jiff::Timestamp::UNIX_EPOCH,
        state: ContainerState::Created,
        label,
        message_file: None,
        user: None,
    }
}

#[tokio::test(start_paused = true)]
async fn log_names_are_those_in_the_container_s_own_directory() {
    let world = testing::world(1, FaultPlan::quiet());
    for file in ["main/0.log", "main/1.log", "mainly/2.log", "main/old/3.log"] {
        let path = PathBuf::from(POD_LOGS).join("default_a_uid-a").join(file);
        world.files.write(&path, b"").unwrap();
    }
    let disk = world.disk_for_life(1);
    assert_eq!(disk.log_names(&pod_a(0), "main").await.unwrap(), ["0.log", "1.log"]);
    assert!(disk.log_names(&pod_a(0), "other").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_ends_half_way_leaves_half_and_nothing_comes_later() {
    let world = testing::world(1, FaultPlan { latency: Duration::ZERO, ..FaultPlan::quiet() });
    let disk = world.disk_for_life(1);
    let preparing = tokio::spawn(async move { disk.prepare(&pod_a(1), &Payloads::new()).await });
    while changes(&world).is_empty() {
        assert!(world.clock.elapsed() < SECOND, "nothing is prepared");
        advance(Duration::from_millis(1)).await;
    }
    preparing.abort();
    sleep(60 * SECOND).await;
    assert_eq!(changes(&world), [DiskChange::DirectoryMade]);
}

#[tokio::test(start_paused = true)]
async fn a_rough_disk_fails_at_times_and_works_when_asked_again() {
    let world = testing::world(1, FaultPlan::rough(Duration::MAX));
    let disk = world.disk_for_life(1);
    let mut failures = 0;
    for _ in 0..300 {
        failures += usize::from(disk.prepare(&pod_a(1), &Payloads::new()).await.is_err());
    }
    assert!((1..100).contains(&failures), "{failures}");
    assert!(world.disk.has_volumes(&a()));
}

fn uids(pods: Result<BTreeMap<PodUid, Holding>, DiskError>) -> BTreeSet<PodUid> {
    pods.unwrap().into_keys().collect()
}
