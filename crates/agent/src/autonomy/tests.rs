//! What is remembered, when it is recalled, and when it is not.

use std::collections::BTreeMap;
use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_cluster::{ClusterError, Standalone};
use oarsman_core::pod::MIRROR_ANNOTATION;
use oarsman_core::token::TokenWish;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use oarsman_cluster::ObjectChanges;
use oarsman_core::event_queue::CountedEvent;
use oarsman_state::FileError;

/// Checkpoints in memory.
#[derive(Default)]
struct Drawer(Mutex<BTreeMap<String, Vec<u8>>>);

#[async_trait]
impl CheckpointStore for Drawer {
    async fn write(
        &self,
        name: &str,
        page: Vec<u8>,
        _: bool,
    ) -> std::result::Result<(), FileError> {
        self.0.lock().unwrap().insert(name.to_owned(), page);
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
struct Server {
    sets: Mutex<Option<mpsc::UnboundedReceiver<Vec<Pod>>>>,
    is_away: bool,
}

#[async_trait]
impl Cluster for Server {
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
        let wish = TokenWish { audience: String::new(), seconds: 3600 };
        Ok(Lookup {
            config_maps: BTreeMap::from([(name, map)]),
            tokens: BTreeMap::from([(wish, Ok("token".to_owned()))]),
            ..Lookup::default()
        })
    }

    fn forget(&self, _: &PodUid) {}

    fn object_changes(&self) -> ObjectChanges {
        Standalone::default().object_changes()
    }

    async fn publish(&self, _: &FullName, _: &PodUid, _: &PodStatus) -> Result<()> {
        Ok(())
    }

    async fn reflect(&self, _: &Pod) -> Result<()> {
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
struct Life {
    cluster: Arc<dyn Cluster>,
    sets: PodSets,
    tell: mpsc::UnboundedSender<Vec<Pod>>,
    memory: Memory,
    task: tokio::task::JoinHandle<()>,
}

impl Life {
    fn begin(vault: &Arc<Drawer>, is_away: bool) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        let inner = Arc::new(Server { sets: Mutex::new(Some(told)), is_away });
        let notebook = Arc::new(Notebook::default());
        let cluster: Arc<dyn Cluster> =
            Arc::new(Remembered { inner, notebook: Arc::clone(&notebook) });
        let sets = cluster.pods().unwrap();
        let memory =
            Memory { notebook, checkpoints: Arc::clone(vault) as Arc<dyn CheckpointStore> };
        let task = tokio::spawn(memory.clone().run());
        Self { cluster, sets, tell, memory, task }
    }

    async fn tell(&mut self, pods: Vec<Pod>) {
        self.tell.send(pods).unwrap();
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
async fn without_a_server_pods_come_back_as_they_were_with_what_they_refer_to() {
    let vault = Arc::new(Drawer::default());
    let mut life = Life::begin(&vault, false);
    let mut mirror = pod("mirror");
    mirror.metadata.annotations = Some([(MIRROR_ANNOTATION.to_owned(), "hash".to_owned())].into());
    life.tell(vec![pod("one"), pod("two"), pod("gone"), mirror]).await;
    let found = life.cluster.lookup(&pod("one")).await.unwrap();
    life.cluster.publish(&name("two"), &PodUid::from("two"), &status("Succeeded")).await.unwrap();
    // A copy from before our status does not replace it.
    life.tell(vec![pod("one"), pod("two")]).await;
    life.end().await;

    let life = Life::begin(&vault, true);
    let begun = Instant::now();
    let recalled = life.memory.recalled().next().await.unwrap();
    assert_eq!(begun.elapsed(), FIRST_WORD);
    assert_eq!(uids(&recalled), ["one", "two"]);
    assert_eq!(
        recalled[1].status,
        Some(status("Succeeded")),
        "it has ended and must not run again"
    );
    assert_eq!(life.cluster.lookup(&pod("one")).await.unwrap(), found);
    assert_eq!(begun.elapsed(), FIRST_WORD + PATIENCE, "a server that is away is not waited for");
    assert!(life.cluster.lookup(&pod("new")).await.is_err(), "nothing is made up");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_in_time_has_the_only_word() {
    let vault = Arc::new(Drawer::default());
    let mut life = Life::begin(&vault, false);
    life.tell(vec![pod("one"), pod("two")]).await;
    life.end().await;

    let mut life = Life::begin(&vault, false);
    life.tell(vec![pod("two")]).await;
    let mut recalled = life.memory.recalled();
    assert!(timeout(Duration::from_secs(3_600), recalled.next()).await.is_err());
    life.end().await;
    assert_eq!(vault.0.lock().unwrap().keys().collect::<Vec<_>>(), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_understood_costs_nobody_else_their_pod() {
    let vault = Arc::new(Drawer::default());
    let mut life = Life::begin(&vault, false);
    life.tell(vec![pod("one")]).await;
    life.end().await;
    vault.0.lock().unwrap().insert("two".to_owned(), b"not a page".to_vec());
    let life = Life::begin(&vault, true);
    assert_eq!(uids(&life.memory.recalled().next().await.unwrap()), ["one"]);
}
