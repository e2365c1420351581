//! The seams on the fake disk: what is stored, lost in a crash, and refused.

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_core::cri_spec::{Payload, PayloadFile};
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::view::{ContainerLabel, ContainerState, ContainerView};
use oarsman_core::volume_manager::VolumeToMount;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::Mount;
use oarsman_volumes::VolumeError;
use tokio::time::{advance, sleep};

use super::*;
use crate::World;
use crate::faults::FaultPlan;
use crate::fixtures::{self, SECOND};
use crate::seams::{POD_LOGS, WorldSeams};
use crate::trace::TraceEntry;

/// The pod `a`, whose UID the common test pods of that name have too.
fn pod_a() -> Pod {
    let metadata = ObjectMeta {
        name: Some("a".to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some("uid-a".to_owned()),
        ..ObjectMeta::default()
    };
    let spec = PodSpec::default();
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

/// The changes of the disk.
fn changes(world: &World) -> Vec<DiskChange> {
    let records = world.trace.records();
    let change = |record: &crate::trace::TraceRecord| match record.entry {
        TraceEntry::Disk { change, .. } => Some(change),
        _ => None,
    };
    records.iter().filter_map(change).collect()
}

/// Volumes of these names, without files.
fn volumes(names: &[&str]) -> Vec<VolumeToMount> {
    let plugin = || "kubernetes.io/empty-dir".to_owned();
    let volume = |name: &&str| VolumeToMount {
        name: (*name).to_owned(),
        plugin: plugin(),
        payload: None,
        claimed: None,
    };
    names.iter().map(volume).collect()
}

/// Makes directories, cgroup and volumes.
async fn prepare(seams: &WorldSeams, names: &[&str]) {
    seams.pod_files.make_directories(&pod_a()).await.unwrap();
    seams.cgroups.ensure(&pod_a()).await.unwrap();
    seams.volumes.set_up(&Arc::new(pod_a()), volumes(names)).await.unwrap();
}

/// Tears down what is there.
async fn tear_down(seams: &WorldSeams) -> Result<(), VolumeError> {
    seams.volumes.tear_down(&a(), seams.volumes.mounted(&a()).await?).await
}

#[tokio::test(start_paused = true)]
async fn resources_exist_from_creation_to_removal_and_each_is_traced_once() {
    let world = fixtures::world(1, FaultPlan::quiet());
    let seams = world.seams(1);
    for _ in 0..2 {
        prepare(&seams, &["data", "more"]).await;
    }
    assert!(seams.cgroups.update(&pod_a()).await.unwrap() && world.disk.has_volumes(&a()));
    assert_eq!(seams.volumes.mounted(&a()).await.unwrap().len(), 2);
    assert_eq!(seams.cgroups.pods().await.unwrap(), BTreeSet::from([a()]));
    assert!(seams.pod_files.pods().await.unwrap()[&a()].directory);
    for _ in 0..2 {
        tear_down(&seams).await.unwrap();
        seams.cgroups.remove(&a()).await.unwrap();
        assert!(!seams.cgroups.update(&pod_a()).await.unwrap());
        seams.pod_files.remove(&a()).await.unwrap();
    }
    assert_eq!(world.disk.pods(), BTreeSet::new());
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
async fn files_that_are_not_known_leave_a_volume_as_it_is() {
    let world = fixtures::world(1, FaultPlan::quiet());
    let (seams, pod) = (world.seams(1), Arc::new(pod_a()));
    let file = PayloadFile { bytes: b"text"[..].into(), mode: 0o644, owner: None, keep: false };
    let payload = Some(Arc::new(Payload::from([("key".to_owned(), file)])));
    for payload in [None, payload.clone(), None, payload] {
        let volume = VolumeToMount { payload, ..volumes(&["data"]).remove(0) };
        seams.volumes.set_up(&pod, vec![volume]).await.unwrap();
    }
    assert_eq!(changes(&world), [DiskChange::VolumesMade, DiskChange::FilesReplaced]);
}

#[tokio::test(start_paused = true)]
async fn a_cgroup_that_vanished_is_missed_and_its_pod_still_listed() {
    let world = fixtures::world(1, FaultPlan::quiet());
    let seams = world.seams(1);
    prepare(&seams, &[]).await;
    world.disk.remove_cgroup(&a());
    assert!(!seams.cgroups.update(&pod_a()).await.unwrap());
    assert_eq!(world.disk.pods(), BTreeSet::from([a()]));
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
        let world = fixtures::world(1, FaultPlan::quiet());
        let records = world.seams(1).records;
        for (phase, lasting) in &writes {
            records.write_status(&a(), &status(phase), *lasting).await.unwrap();
        }
        world.kill_switch.end();
        let records = world.seams(2).records;
        let last = writes.last().map(|(phase, _)| status(phase));
        assert_eq!(records.read_status(&a()).await.unwrap(), last, "{writes:?}");
        world.disk.lose_unsynced();
        assert_eq!(records.read_status(&a()).await.unwrap(), left.map(status), "{writes:?}");
        assert_eq!(records.pods().await.unwrap().len(), usize::from(left.is_some()));
        records.remove(&a()).await.unwrap();
        world.disk.lose_unsynced();
        assert_eq!(records.read_status(&a()).await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn removal_under_a_running_process_is_refused_and_traced() {
    let world = fixtures::world(1, FaultPlan::quiet());
    let seams = world.seams(1);
    prepare(&seams, &["data"]).await;
    let (_, id) = fixtures::run(&world.runtime, "a", &["forever"]).await.unwrap();
    let before = changes(&world).len();
    let in_use = [
        tear_down(&seams).await.unwrap_err().to_string(),
        seams.cgroups.remove(&a()).await.unwrap_err().to_string(),
        seams.pod_files.remove(&a()).await.unwrap_err().to_string(),
    ];
    assert!(in_use.iter().all(|error| error.ends_with("it is in use")), "{in_use:?}");
    let violations =
        [DiskViolation::VolumesInUse, DiskViolation::CgroupInUse, DiskViolation::DirectoryInUse];
    assert_eq!(changes(&world)[before..], violations.map(DiskChange::Violated));
    assert!(world.disk.has_cgroup(&a()) && world.disk.has_volumes(&a()));
    world.runtime.stop_container(&id, Duration::ZERO).await.unwrap();
    tear_down(&seams).await.unwrap();
    seams.cgroups.remove(&a()).await.unwrap();
    seams.pod_files.remove(&a()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_process_that_the_runtime_has_lost_track_of_still_uses_its_cgroup() {
    let world = fixtures::world(1, FaultPlan::quiet());
    let seams = world.seams(1);
    prepare(&seams, &[]).await;
    fixtures::run(&world.runtime, "a", &["forever"]).await.unwrap();
    world.runtime.restart(60 * SECOND, Probability::ALWAYS);
    seams.cgroups.remove(&a()).await.unwrap_err();
    assert_eq!(changes(&world).last(), Some(&DiskChange::Violated(DiskViolation::CgroupInUse)));
}

#[tokio::test(start_paused = true)]
async fn a_termination_message_is_in_the_file_mounted_at_the_container_s_path() {
    const PATH: &str = "/dev/termination-log";
    for (mounted, words) in [(PATH, "goodbye"), ("/elsewhere", "")] {
        let world = fixtures::world(1, FaultPlan::quiet());
        world.files.write("/host/words".as_ref(), b"goodbye").unwrap();
        let sandbox = world.runtime.run_pod_sandbox(fixtures::sandbox("a", 0)).await.unwrap();
        let mut request = fixtures::container(&sandbox, 0, &["forever"]);
        request.config.as_mut().unwrap().mounts.push(Mount {
            container_path: mounted.to_owned(),
            host_path: "/host/words".to_owned(),
            ..Mount::default()
        });
        let id = world.runtime.create_container(request).await.unwrap();
        let container = view(&sandbox, &id, PATH);
        assert_eq!(
            world.seams(1).pod_files.termination_message(&a(), &container).await.unwrap(),
            words
        );
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
        image: fixtures::IMAGE.to_owned(),
        image_ref: String::new(),
        created_at: jiff::Timestamp::UNIX_EPOCH,
        state: ContainerState::Created,
        label,
        message_file: None,
        user: None,
        stop_signal: None,
    }
}

#[tokio::test(start_paused = true)]
async fn log_names_are_those_in_the_container_s_own_directory() {
    let world = fixtures::world(1, FaultPlan::quiet());
    for file in ["main/0.log", "main/1.log", "mainly/2.log", "main/old/3.log"] {
        let path = PathBuf::from(POD_LOGS).join("default_a_uid-a").join(file);
        world.files.write(&path, b"").unwrap();
    }
    let files = world.seams(1).pod_files;
    assert_eq!(files.log_names(&pod_a(), "main").await.unwrap(), ["0.log", "1.log"]);
    assert!(files.log_names(&pod_a(), "other").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_ends_half_way_leaves_half_and_nothing_comes_later() {
    let world = fixtures::world(1, FaultPlan { latency: Duration::ZERO, ..FaultPlan::quiet() });
    let volumes_of_life = world.seams(1).volumes;
    let setting_up = tokio::spawn(async move {
        volumes_of_life.set_up(&Arc::new(pod_a()), volumes(&["one", "two"])).await
    });
    while changes(&world).is_empty() {
        assert!(world.clock.elapsed() < SECOND, "nothing is set up");
        advance(Duration::from_millis(1)).await;
    }
    setting_up.abort();
    sleep(60 * SECOND).await;
    assert_eq!(world.seams(2).volumes.mounted(&a()).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_disk_with_faults_fails_at_times_and_works_when_retried() {
    let world = fixtures::world(1, FaultPlan::rough(Duration::MAX));
    let cgroups = world.seams(1).cgroups;
    let mut failures = 0;
    for _ in 0..300 {
        failures += usize::from(cgroups.ensure(&pod_a()).await.is_err());
    }
    assert!((1..100).contains(&failures), "{failures}");
    assert!(world.disk.has_cgroup(&a()));
}
