//! What is remembered, when it is recalled, and when it is not.

use std::collections::BTreeMap;
use std::sync::Mutex;

use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, ServiceAccount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_cluster::{ClusterError, Standalone};
use oarsman_core::pod::MIRROR_ANNOTATION;
use oarsman_core::token::TokenRequestKey;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use oarsman_cluster::ObjectChanges;
use oarsman_core::event_queue::CountedEvent;
use oarsman_state::FileError;

#[derive(Default)]
struct InMemoryCheckpoints(Mutex<BTreeMap<String, Vec<u8>>>);

impl InMemoryCheckpoints {
    fn text(&self) -> String {
        let by_pod = self.0.lock().unwrap();
        by_pod.values().map(|checkpoint| String::from_utf8_lossy(checkpoint).into_owned()).collect()
    }
}

#[async_trait]
impl CheckpointStore for InMemoryCheckpoints {
    async fn write(
        &self,
        name: &str,
        checkpoint: Vec<u8>,
        _: bool,
    ) -> std::result::Result<(), FileError> {
        self.0.lock().unwrap().insert(name.to_owned(), checkpoint);
        Ok(())
    }

    async fn read_all(&self) -> std::result::Result<BTreeMap<String, Vec<u8>>, FileError> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn remove(&self, name: &str) -> std::result::Result<(), FileError> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }
}

/// An API server that sends the given sets, and has one ConfigMap while it is reachable.
struct ScriptedCluster {
    sets: Mutex<Option<mpsc::UnboundedReceiver<Vec<Pod>>>>,
    is_away: bool,
}

#[async_trait]
impl Cluster for ScriptedCluster {
    fn pods(&self) -> Option<PodSets> {
        let sets = self.sets.lock().unwrap().take()?;
        let next = |mut sets: mpsc::UnboundedReceiver<Vec<Pod>>| async {
            let pods = sets.recv().await;
            Some((pods?.into_iter().map(Arc::new).collect(), sets))
        };
        Some(futures::stream::unfold(sets, next).chain(futures::stream::pending()).boxed())
    }

    async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        if self.is_away {
            sleep(Duration::from_secs(30)).await;
            let object = ClusterError::pod(&pod.full_name());
            return Err(ClusterError::Unavailable { call: "lookup", object, why: String::new() });
        }
        let name = FullName { name: "config".to_owned(), namespace: "default".to_owned() };
        let metadata = ObjectMeta {
            name: Some(name.name.clone()),
            namespace: Some(name.namespace.clone()),
            ..ObjectMeta::default()
        };
        let map = ConfigMap { metadata, ..ConfigMap::default() };
        let wish = TokenRequestKey { audience: String::new(), seconds: 3600 };
        let claim = PersistentVolumeClaim::default();
        let disk = FullName { name: "disk".to_owned(), namespace: "default".to_owned() };
        let volume = PersistentVolume::default();
        Ok(Lookup {
            claims: BTreeMap::from([(disk, Arc::new(claim))]),
            persistent_volumes: BTreeMap::from([("pv".to_owned(), Arc::new(volume))]),
            config_maps: BTreeMap::from([(name, Arc::new(map))]),
            tokens: BTreeMap::from([(wish, Ok("the token".to_owned()))]),
            ..Lookup::default()
        })
    }

    async fn service_account(&self, name: &FullName) -> Result<ServiceAccount> {
        Err(ClusterError::Gone { object: ClusterError::service_account(name) })
    }

    async fn service_account_token(&self, pod: &Pod, _: &str, _: &str) -> Result<String> {
        Err(ClusterError::Gone { object: ClusterError::pod(&pod.full_name()) })
    }

    fn forget(&self, _: &PodUid) {}

    fn object_changes(&self) -> ObjectChanges {
        Standalone::default().object_changes()
    }

    async fn publish(&self, _: &FullName, _: &PodUid, _: &PodStatus) -> Result<()> {
        Ok(())
    }

    async fn create_mirror_pod(&self, _: &Pod) -> Result<()> {
        Ok(())
    }

    async fn delete(&self, _: &FullName, _: &PodUid) -> Result<()> {
        Ok(())
    }

    async fn record(&self, _: &CountedEvent) -> Result<()> {
        Ok(())
    }
}

/// The checkpoints of one run of an agent.
struct CheckpointFixture {
    cluster: Arc<dyn Cluster>,
    sets: PodSets,
    send_pods: mpsc::UnboundedSender<Vec<Pod>>,
    checkpoints: PodCheckpoints,
    task: tokio::task::JoinHandle<()>,
}

impl CheckpointFixture {
    fn begin(stored: &Arc<InMemoryCheckpoints>, is_away: bool) -> Self {
        let (send_pods, received) = mpsc::unbounded_channel();
        let inner = Arc::new(ScriptedCluster { sets: Mutex::new(Some(received)), is_away });
        let cache = Arc::new(CheckpointCache::default());
        let cluster: Arc<dyn Cluster> =
            Arc::new(CheckpointedCluster { inner, cache: Arc::clone(&cache) });
        let sets = cluster.pods().unwrap();
        let checkpoints =
            PodCheckpoints { cache, store: Arc::clone(stored) as Arc<dyn CheckpointStore> };
        let task = tokio::spawn(checkpoints.clone().run());
        Self { cluster, sets, send_pods, checkpoints, task }
    }

    async fn send_pods(&mut self, pods: Vec<Pod>) {
        self.send_pods.send(pods).unwrap();
        self.sets.next().await.unwrap();
    }

    /// Waits until everything is written, and ends.
    async fn end(self) {
        sleep(Duration::from_secs(5)).await;
        self.task.abort();
    }
}

fn pod(uid: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(uid.to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}

fn name(uid: &str) -> FullName {
    pod(uid).full_name()
}

fn status(phase: &str) -> PodStatus {
    PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
}

fn uids(pods: &[Arc<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.uid().to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn without_an_api_server_pods_are_restored_with_their_objects() {
    let stored = Arc::new(InMemoryCheckpoints::default());
    let mut fixture = CheckpointFixture::begin(&stored, false);
    let mut mirror = pod("mirror");
    mirror.metadata.annotations = Some([(MIRROR_ANNOTATION.to_owned(), "hash".to_owned())].into());
    fixture.send_pods(vec![pod("one"), pod("two"), pod("gone"), mirror]).await;
    let found = fixture.cluster.lookup(&pod("one")).await.unwrap();
    fixture
        .cluster
        .publish(&name("two"), &PodUid::from("two"), &status("Succeeded"))
        .await
        .unwrap();
    // A copy from before our status does not replace it.
    fixture.send_pods(vec![pod("one"), pod("two")]).await;
    fixture.end().await;
    assert!(!stored.text().contains("the token"), "tokens are not written down");

    let fixture = CheckpointFixture::begin(&stored, true);
    let begun = Instant::now();
    let restored_pods = fixture.checkpoints.restored_pods().next().await.unwrap();
    assert_eq!(begun.elapsed(), API_SERVER_WAIT);
    assert_eq!(uids(&restored_pods), ["one", "two"]);
    assert_eq!(
        restored_pods[1].status,
        Some(status("Succeeded")),
        "it has ended and must not run again"
    );
    let restored_pods = fixture.cluster.lookup(&pod("one")).await.unwrap();
    assert_eq!(restored_pods, Lookup { tokens: BTreeMap::new(), tokens_later: true, ..found });
    assert_eq!(
        begun.elapsed(),
        API_SERVER_WAIT + LOOKUP_WAIT,
        "a server that is away is not waited for"
    );
    assert!(fixture.cluster.lookup(&pod("new")).await.is_err(), "nothing is made up");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_restored_when_the_api_server_answers_in_time() {
    let stored = Arc::new(InMemoryCheckpoints::default());
    let mut fixture = CheckpointFixture::begin(&stored, false);
    fixture.send_pods(vec![pod("one"), pod("two")]).await;
    fixture.end().await;

    let mut fixture = CheckpointFixture::begin(&stored, false);
    fixture.send_pods(vec![pod("two")]).await;
    let mut restored_pods = fixture.checkpoints.restored_pods();
    assert!(timeout(Duration::from_secs(3_600), restored_pods.next()).await.is_err());
    fixture.end().await;
    assert_eq!(stored.0.lock().unwrap().keys().collect::<Vec<_>>(), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_checkpoint_does_not_affect_the_others() {
    let stored = Arc::new(InMemoryCheckpoints::default());
    let mut fixture = CheckpointFixture::begin(&stored, false);
    fixture.send_pods(vec![pod("one")]).await;
    fixture.end().await;
    stored.0.lock().unwrap().insert("two".to_owned(), b"not a page".to_vec());
    let fixture = CheckpointFixture::begin(&stored, true);
    assert_eq!(uids(&fixture.checkpoints.restored_pods().next().await.unwrap()), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_an_older_version_wrote_down_are_removed() {
    let stored = Arc::new(InMemoryCheckpoints::default());
    let mut fixture = CheckpointFixture::begin(&stored, false);
    fixture.send_pods(vec![pod("one")]).await;
    fixture.cluster.lookup(&pod("one")).await.unwrap();
    fixture.end().await;
    let checkpoint = stored.0.lock().unwrap()["one"].clone();
    let mut checkpoint: serde_json::Value = serde_json::from_slice(&checkpoint).unwrap();
    checkpoint["objects"]["tokens"] = serde_json::json!([["", 3600, "the token"]]);
    stored.0.lock().unwrap().insert("one".to_owned(), checkpoint.to_string().into_bytes());
    CheckpointFixture::begin(&stored, true).end().await;
    assert!(!stored.text().contains("the token"));
    assert_eq!(
        uids(
            &CheckpointFixture::begin(&stored, true)
                .checkpoints
                .restored_pods()
                .next()
                .await
                .unwrap()
        ),
        ["one"]
    );
}

/// A store that refuses one checkpoint.
struct RefusingStore(InMemoryCheckpoints);

#[async_trait]
impl CheckpointStore for RefusingStore {
    async fn write(
        &self,
        name: &str,
        checkpoint: Vec<u8>,
        lasting: bool,
    ) -> std::result::Result<(), FileError> {
        if name == "a" {
            let (path, why) = ("a".into(), "it cannot be written".to_owned());
            return Err(FileError { doing: "write", path, why });
        }
        self.0.write(name, checkpoint, lasting).await
    }

    async fn read_all(&self) -> std::result::Result<BTreeMap<String, Vec<u8>>, FileError> {
        self.0.read_all().await
    }

    async fn remove(&self, name: &str) -> std::result::Result<(), FileError> {
        self.0.remove(name).await
    }
}

/// Row H21 of docs/security.md.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_cannot_be_written_keeps_no_other_from_it() {
    let cache = Arc::new(CheckpointCache::default());
    cache.set_api_pods(&[pod("a"), pod("b"), pod("c")].map(Arc::new));
    let store = Arc::new(RefusingStore(InMemoryCheckpoints::default()));
    let checkpoints =
        PodCheckpoints { cache, store: Arc::clone(&store) as Arc<dyn CheckpointStore> };
    assert!(!checkpoints.write().await);
    assert_eq!(store.0.0.lock().unwrap().keys().collect::<Vec<_>>(), ["b", "c"]);
    assert!(checkpoints.cache.next_write().is_some_and(|write| write.name == "a"));
}
