//! What a worker knows about its pod, shared with the work it has under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::backoff::CrashBackoff;
use oarsman_core::config::Lookup;
use oarsman_core::event;
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::image::pulls::FailedPulls;
use oarsman_core::probe::ProbeResults;
use oarsman_core::report::Activity;
use oarsman_core::start_error::StartError;
use oarsman_core::status::recall;
use oarsman_core::time::Mono;
use oarsman_core::view::PodView;
use oarsman_cri::CriError;
use oarsman_state::FileError;

use crate::node::Node;
use crate::pod_reader;

/// How long to wait when the runtime does not even tell what it holds of a new pod.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// One pod's room.
pub(crate) struct Room {
    pub(super) node: Arc<Node>,
    pub(super) uid: PodUid,
    pub(super) name: FullName,
    memory: Mutex<Memory>,
}

/// What the worker remembers. All of it can be found out again: a restarted agent begins with none.
#[derive(Debug)]
pub(super) struct Memory {
    /// The runtime's word, as last read.
    pub(super) view: PodView,
    /// When that was, if it was the first time and nothing has been decided from it yet.
    first_look: Option<Mono>,
    /// The status last made.
    pub(super) status: Option<PodStatus>,
    /// What of it was told last.
    pub(super) told: Option<PodStatus>,
    /// Why containers were not started, until one is.
    pub(super) start_errors: BTreeMap<String, StartError>,
    /// What the pod refers to, as it was when we last could ask.
    pub(super) lookup: Option<Arc<Lookup>>,
    /// Whether its volumes have been made.
    pub(super) has_volumes: bool,
    /// Why nothing of the pod is started yet.
    pub(super) held_by: Option<String>,
    /// What ended containers wrote.
    pub(super) last_words: BTreeMap<ContainerId, String>,
    /// What probes found.
    pub(super) probes: ProbeResults,
    /// Which containers ended of late.
    pub(super) crashes: CrashBackoff,
    /// Which images could not be pulled.
    pub(super) pulls: FailedPulls,
    /// When the pod was first seen, until all of it has been started once.
    pub(super) awaited: Option<Mono>,
    /// Attempts that the runtime holds a name for though it has nothing under it, by container; the pod's own is "".
    pub(super) taken: BTreeMap<String, u32>,
}

impl Room {
    pub(super) fn new(node: Arc<Node>, uid: PodUid, name: FullName) -> Self {
        let memory = Memory {
            view: PodView::empty(uid.clone(), name.clone()),
            first_look: None,
            status: None,
            told: None,
            start_errors: BTreeMap::new(),
            lookup: None,
            has_volumes: false,
            held_by: None,
            last_words: BTreeMap::new(),
            probes: ProbeResults::default(),
            crashes: CrashBackoff::new(node.config.longest_crash_backoff),
            pulls: FailedPulls::default(),
            awaited: Some(node.seams.clock.mono()),
            taken: BTreeMap::new(),
        };
        Self { node, uid, name, memory: Mutex::new(memory) }
    }

    /// The memory; never held over an await.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        // A panic while it was held is one pod's failure; what it remembers is read anew before it is used.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the runtime's word for the first time, and what was remembered over a restart, however long that takes: a pod
    /// whose end is not recalled would run again. Tells whether nothing of the pod runs.
    pub(super) async fn first_look(&self, pod: Option<&Pod>) -> bool {
        let mut untold = pod;
        loop {
            let error = match (self.look().await, self.recall(pod).await) {
                (Ok(view), Ok(())) => {
                    self.memory().first_look = Some(self.now());
                    return view.is_quiet();
                }
                (Err(error), _) => error.to_string(),
                (Ok(_), Err(error)) => error.to_string(),
            };
            tracing::warn!(pod = %self.name, %error, "cannot look at the pod yet");
            if let Some(pod) = untold.take() {
                self.node.recorder.record(pod, [event::status_unknown(&error)]);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The first look, once, if it was no longer ago than that. What has happened since is told by an event.
    pub(super) fn take_first_look(&self, within: Duration) -> Option<PodView> {
        let mut memory = self.memory();
        let at = memory.first_look.take()?;
        (self.now().since(at) < within).then(|| memory.view.clone())
    }

    /// All of the pod has been started: how long that took counts the first time.
    pub(super) fn has_started(&self) {
        if let Some(since) = self.memory().awaited.take() {
            self.node.measures.pod_start.took(self.now().since(since));
        }
    }

    /// Reads the runtime's word.
    pub(super) async fn look(&self) -> Result<PodView, CriError> {
        let looking = self.busy(Activity::Looking);
        let runtime = self.node.seams.runtime.as_ref();
        let answer = pod_reader::read(runtime, &self.uid, &self.name).await;
        self.node.book.heard_runtime(&answer);
        drop(looking);
        let view = answer?;
        // Another agent may run a pod of the same UID in sandboxes of its own.
        let view = self.node.config.territory.own_part(view);
        self.memory().view = view.clone();
        self.hear_last_words(&view).await;
        Ok(view)
    }

    pub(super) fn forget_probes(&self) {
        self.memory().probes = ProbeResults::default();
    }

    /// What was said last: by our own record of a pod that no API server remembers, else by the API server's copy.
    async fn recall(&self, pod: Option<&Pod>) -> Result<(), FileError> {
        let recorded = self.node.seams.records.recall(&self.uid).await?;
        let mut memory = self.memory();
        // What was ready stays so until a probe says otherwise.
        let said = recorded.as_ref().or_else(|| pod.and_then(|pod| pod.status.as_ref()));
        let began = self.node.began;
        said.into_iter().for_each(|status| recall::recall(status, began, &mut memory.probes));
        (memory.told, memory.status) = (recorded.clone(), recorded);
        Ok(())
    }
}
