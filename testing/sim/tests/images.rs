//! Images of the node: who may use one that is there, what is recorded of pulls, and which go when the disk is full.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{LocalObjectReference, Pod, Secret};
use oarsman_agent::{
    ActivePodsReader, AdmitAll, AgentConfig, ContainerHooks, CoreDecisions, ImageManagerConfig,
    Inputs, NodeAddresses, ReportStore, SyncLoopMonitor,
};
use oarsman_core::ids::FullName;
use oarsman_core::image::verification::CredentialVerificationPolicy;
use oarsman_core::rate::TokenBucket;
use oarsman_core::report::NodeReport;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{AuthConfig, ImageSpec};
use oarsman_sim::scenario::{PRIVATE, container, pod};
use oarsman_world::faults::FaultPlan;
use oarsman_world::runtime::{ImageAccess, ImageSource};
use oarsman_world::trace::{ContainerTransition, TraceEntry};
use oarsman_world::{World, simulate};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

const PUBLIC: &str = "reg.world/public:1";
const MIB: u64 = 1 << 20;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn start_agent(world: &World, incarnation: u32, images: ImageManagerConfig) -> JoinHandle<()> {
    let seams = oarsman_sim::seams(world, incarnation);
    let (_, commands) = mpsc::channel(1);
    let inputs = Inputs {
        sources: Vec::new(),
        admit_handler: Arc::new(AdmitAll),
        decisions: Arc::new(CoreDecisions),
        metrics: Arc::default(),
        report_store: ReportStore::new(Arc::clone(&seams.clock), NodeReport::default()),
        pods: ActivePodsReader::default(),
        node_addresses: NodeAddresses::default(),
        sync_loop_monitor: SyncLoopMonitor::default(),
        container_lifecycle: ContainerHooks::default(),
        tracer: None,
        commands,
    };
    let config = AgentConfig { images, ..oarsman_sim::config() };
    tokio::spawn(oarsman_agent::run(seams, config, inputs))
}

fn usual() -> ImageManagerConfig {
    oarsman_sim::config().images
}

/// A world with a private image, whose pull takes four seconds, and a public one.
fn in_world(happens: impl AsyncFnOnce(World)) {
    let lived = simulate(5, FaultPlan::quiet(), |world| async move {
        world.runtime.preload(ImageSource::script("world/script:1"));
        let credentials = Some(AuthConfig {
            username: "rower".to_owned(),
            password: "oar".to_owned(),
            ..AuthConfig::default()
        });
        let private = ImageAccess { credentials, time: seconds(4) };
        world.runtime.publish(ImageSource::script(PRIVATE), private);
        world.runtime.publish(ImageSource::script(PUBLIC), ImageAccess::PUBLIC);
        put_login(&world, "oar");
        happens(world).await;
    });
    assert!(lived.is_ok());
}

/// The Secret `login` with the credentials of the private image.
fn put_login(world: &World, password: &str) {
    let text = format!(
        r#"{{"auths": {{"reg.world": {{"username": "rower", "password": "{password}"}}}}}}"#
    );
    let mut secret = Secret {
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        string_data: Some(BTreeMap::from([(".dockerconfigjson".to_owned(), text)])),
        ..Secret::default()
    };
    secret.metadata.name = Some("login".to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    secret.metadata.uid = Some("uid-login".to_owned());
    world.cluster.put_secret(secret);
}

/// A pod of that image; `owner…` names the Secret for it.
fn named(name: &str, image: &str, policy: &str) -> Pod {
    let mut main = container("main", &["forever"]);
    (main.image, main.image_pull_policy) = (Some(image.to_owned()), Some(policy.to_owned()));
    let mut pod = pod(vec![], vec![main], 1);
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod.metadata.annotations = Some([("note".to_owned(), name.to_owned())].into());
    if name.starts_with("owner") {
        let login = LocalObjectReference { name: "login".to_owned() };
        pod.spec.get_or_insert_default().image_pull_secrets = Some(vec![login]);
    }
    pod
}

/// Whether a container of the pod has started.
fn has_started(world: &World, name: &str) -> bool {
    let uid = format!("uid-{name}");
    world.trace.records().iter().any(|record| {
        matches!(&record.entry, TraceEntry::Container { target, change: ContainerTransition::Started } if target.pod_uid == uid)
    })
}

fn pulls(world: &World) -> usize {
    let is_pull =
        |entry: &TraceEntry| matches!(entry, TraceEntry::Called { call: "PullImage", .. });
    world.trace.records().iter().filter(|record| is_pull(&record.entry)).count()
}

/// What the pod's container waits for.
fn waits(world: &World, name: &str) -> (String, String) {
    let name = FullName { name: name.to_owned(), namespace: "default".to_owned() };
    let status = world.cluster.get(&name).and_then(|pod| pod.status).unwrap_or_default();
    let container = status.container_statuses.unwrap_or_default().into_iter().next();
    let waiting = container.and_then(|status| status.state?.waiting).unwrap_or_default();
    (waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default())
}

fn messages(world: &World, reason: &str) -> Vec<String> {
    let events = world.cluster.events().into_iter().filter(|event| event.event.reason == reason);
    events.map(|event| event.event.message).collect()
}

fn node_events(world: &World, reason: &str) -> Vec<String> {
    let events = world.cluster.node_history().events.into_iter();
    events.filter(|(_, event)| event.reason == reason).map(|(_, event)| event.message).collect()
}

/// Row C9 of docs/security.md.
#[test]
fn a_private_image_is_for_those_who_can_pull_it() {
    in_world(async |world| {
        let agent = start_agent(&world, 1, usual());
        world.cluster.create(named("owner", PRIVATE, "IfNotPresent"));
        sleep(seconds(20)).await;
        assert!(has_started(&world, "owner"));
        world.cluster.create(named("thief", PRIVATE, "IfNotPresent"));
        world.cluster.create(named("thief-never", PRIVATE, "Never"));
        sleep(seconds(20)).await;
        agent.abort();
        // As after a restart of the agent, whose memory is gone.
        let agent = start_agent(&world, 2, usual());
        world.cluster.create(named("thief-late", PRIVATE, "IfNotPresent"));
        sleep(seconds(60)).await;
        for thief in ["thief", "thief-late"] {
            assert!(!has_started(&world, thief), "{thief}");
            let (reason, message) = waits(&world, thief);
            assert!(reason.contains("ImagePull") && message.contains("denied"), "{message}");
        }
        let (reason, message) = waits(&world, "thief-never");
        assert_eq!(reason, "ErrImageNeverPull");
        assert!(message.contains("is not present with pull policy of Never"), "{message}");
        let before = pulls(&world);
        for (name, policy) in [("owner-2", "IfNotPresent"), ("owner-3", "Never")] {
            world.cluster.create(named(name, PRIVATE, policy));
            sleep(seconds(20)).await;
            assert!(has_started(&world, name), "{name}");
        }
        let present = messages(&world, "Pulled");
        let told = "already present on machine and can be accessed by the pod";
        assert_eq!(present.iter().filter(|message| message.ends_with(told)).count(), 2);
        let of_thieves = pulls(&world) - before;
        assert!(of_thieves <= 3, "the owners pull nothing: {of_thieves}");
        agent.abort();
    });
}

#[test]
fn a_secret_that_has_changed_is_recognised() {
    in_world(async |world| {
        let agent = start_agent(&world, 1, usual());
        world.cluster.create(named("owner", PRIVATE, "IfNotPresent"));
        sleep(seconds(20)).await;
        put_login(&world, "new");
        sleep(seconds(120)).await;
        let before = pulls(&world);
        world.cluster.create(named("owner-2", PRIVATE, "IfNotPresent"));
        sleep(seconds(20)).await;
        assert!(has_started(&world, "owner-2"));
        assert_eq!(pulls(&world), before);
        agent.abort();
    });
}

/// Row C9 of docs/security.md.
#[test]
fn a_pull_that_was_cut_off_opens_the_image_to_nobody() {
    in_world(async |world| {
        let agent = start_agent(&world, 1, usual());
        world.cluster.create(named("owner", PRIVATE, "IfNotPresent"));
        sleep(seconds(3)).await;
        agent.abort();
        sleep(seconds(1)).await;
        let (records, intents) = world.disk.pull_records();
        assert_eq!((records.len(), intents.len()), (0, 1), "it is being pulled");
        world
            .cluster
            .delete(&FullName { name: "owner".into(), namespace: "default".into() }, Some(0));
        // It came all the same.
        world.runtime.preload(ImageSource::script(PRIVATE));
        let agent = start_agent(&world, 2, usual());
        world.cluster.create(named("thief-never", PRIVATE, "Never"));
        world.cluster.create(named("thief", PRIVATE, "IfNotPresent"));
        sleep(seconds(30)).await;
        assert!(!has_started(&world, "thief") && !has_started(&world, "thief-never"));
        sleep(seconds(300)).await;
        let (records, intents) = world.disk.pull_records();
        assert_eq!((records.len(), intents.len()), (1, 0), "there is a record of it");
        assert!(!has_started(&world, "thief") && !has_started(&world, "thief-never"));
        agent.abort();
    });
}

/// Row C9 of docs/security.md.
#[test]
fn a_damaged_record_means_a_pull_which_replaces_it() {
    in_world(async |world| {
        let agent = start_agent(&world, 1, usual());
        world.cluster.create(named("owner", PRIVATE, "IfNotPresent"));
        sleep(seconds(20)).await;
        let (records, _) = world.disk.pull_records();
        records.iter().for_each(|image| world.disk.break_pull_record(image));
        world.cluster.create(named("thief", PRIVATE, "IfNotPresent"));
        sleep(seconds(20)).await;
        assert!(!has_started(&world, "thief"));
        let before = pulls(&world);
        world.cluster.create(named("owner-2", PRIVATE, "IfNotPresent"));
        sleep(seconds(20)).await;
        assert!(has_started(&world, "owner-2") && pulls(&world) > before);
        assert_eq!(world.disk.pull_records().0, records);
        agent.abort();
    });
}

#[test]
fn without_verification_all_pods_use_what_is_there_and_nothing_is_recorded() {
    in_world(async |world| {
        let images = ImageManagerConfig { verification: None, ..usual() };
        let agent = start_agent(&world, 1, images);
        world.cluster.create(named("owner", PRIVATE, "IfNotPresent"));
        sleep(seconds(20)).await;
        world.cluster.create(named("guest", PRIVATE, "Never"));
        sleep(seconds(20)).await;
        assert!(has_started(&world, "guest"));
        assert_eq!(world.disk.pull_records(), Default::default());
        let told = format!("Container image \"{PRIVATE}\" already present on machine");
        assert!(messages(&world, "Pulled").contains(&told));
        agent.abort();
    });
}

#[test]
fn preloaded_images_are_for_all_unless_all_are_verified() {
    in_world(async |world| {
        let verification = Some(CredentialVerificationPolicy::AlwaysVerify);
        let agent = start_agent(&world, 1, ImageManagerConfig { verification, ..usual() });
        world.cluster.create(named("strict", "world/script:1", "Never"));
        sleep(seconds(20)).await;
        assert_eq!(waits(&world, "strict").0, "ErrImageNeverPull");
        agent.abort();
        let agent = start_agent(&world, 2, usual());
        sleep(seconds(100)).await;
        assert!(has_started(&world, "strict"));
        agent.abort();
    });
}

#[test]
fn a_pull_carries_the_sandbox_and_the_annotations_of_the_pod() {
    in_world(async |world| {
        let agent = start_agent(&world, 1, usual());
        world.cluster.create(named("web", PUBLIC, "Always"));
        sleep(seconds(20)).await;
        let [request] = &world.runtime.pull_requests()[..] else { panic!("one pull") };
        let metadata = request.sandbox_config.as_ref().unwrap().metadata.as_ref().unwrap();
        assert_eq!((metadata.name.as_str(), metadata.uid.as_str()), ("web", "uid-web"));
        let annotations = &request.image.as_ref().unwrap().annotations;
        assert_eq!(annotations.get("note").map(String::as_str), Some("web"));
        agent.abort();
    });
}

#[test]
fn a_pull_over_the_limit_fails_and_is_tried_again() {
    in_world(async |world| {
        let pull_rate = Some(TokenBucket::new(1, seconds(5)));
        let agent = start_agent(&world, 1, ImageManagerConfig { pull_rate, ..usual() });
        world.cluster.create(named("a", PUBLIC, "Always"));
        world.cluster.create(named("b", PUBLIC, "Always"));
        sleep(seconds(3)).await;
        assert_eq!(pulls(&world), 1);
        let told = format!("Failed to pull image \"{PUBLIC}\": pull QPS exceeded");
        assert!(messages(&world, "Failed").contains(&told), "{:?}", messages(&world, "Failed"));
        sleep(seconds(60)).await;
        assert!(has_started(&world, "a") && has_started(&world, "b"));
        agent.abort();
    });
}

#[test]
fn records_of_images_that_are_gone_are_removed() {
    in_world(async |world| {
        let agent = start_agent(&world, 1, usual());
        world.cluster.create(named("owner", PRIVATE, "IfNotPresent"));
        sleep(seconds(20)).await;
        assert_eq!(world.disk.pull_records().0.len(), 1);
        sleep(seconds(400)).await;
        assert_eq!(world.disk.pull_records().0.len(), 1, "it is there");
        let image = ImageSpec { image: PRIVATE.to_owned(), ..ImageSpec::default() };
        world.runtime.remove_image(image).await.unwrap();
        sleep(seconds(400)).await;
        assert_eq!(world.disk.pull_records(), Default::default());
        agent.abort();
    });
}

#[test]
fn a_disk_that_stays_full_is_told_and_images_of_containers_stay() {
    in_world(async |world| {
        world
            .runtime
            .preload(ImageSource { pinned: true, ..ImageSource::script("world/pinned:1") });
        world.runtime.preload(ImageSource::script("world/unused:1"));
        let agent = start_agent(&world, 1, usual());
        world.cluster.create(named("web", "world/script:1", "IfNotPresent"));
        sleep(seconds(20)).await;
        world.disk.set_capacity(3 * MIB);
        sleep(seconds(300)).await;
        assert_eq!(world.runtime.image_names().len(), 2, "{:?}", world.runtime.image_names());
        assert_eq!(node_events(&world, "FreeDiskSpaceFailed").len(), 0);
        world.disk.set_capacity(2 * MIB);
        sleep(seconds(300)).await;
        let wanted = 2 * MIB / 5;
        let told = format!(
            "Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only found 0 bytes eligible to free."
        );
        assert_eq!(node_events(&world, "FreeDiskSpaceFailed"), [told.as_str()]);
        assert_eq!(node_events(&world, "ImageGCFailed").len(), 0, "once may be by chance");
        sleep(seconds(300)).await;
        assert_eq!(node_events(&world, "ImageGCFailed"), [told]);
        let mut left = world.runtime.image_names();
        left.sort();
        assert_eq!(left, ["world/pinned:1", "world/script:1"]);
        agent.abort();
    });
}

#[test]
fn a_disk_of_unknown_size_is_told() {
    in_world(async |world| {
        world.disk.set_capacity(0);
        let agent = start_agent(&world, 1, usual());
        sleep(seconds(20)).await;
        let told = "invalid capacity 0 on image filesystem";
        assert_eq!(node_events(&world, "InvalidDiskCapacity"), [told]);
        assert!(!world.runtime.image_names().is_empty());
        agent.abort();
    });
}
