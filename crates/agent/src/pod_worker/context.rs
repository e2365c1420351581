//! The pod context: what the parts of a worker share about their pod.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::lifecycle::KillReason;
use oarsman_core::probe::ProbeResults;
use oarsman_core::report::Activity;
use oarsman_core::time::Mono;
use oarsman_core::view::PodView;
use oarsman_sync::Guarded;

use super::image::ImagePuller;
use super::objects::ReferencedObjects;
use super::prober::ProbeSlots;
use super::publisher::Publisher;
use super::reader::PodStateReader;
use super::starter::Starter;
use crate::node::AgentContext;
use crate::report_store::ActivityGuard;

/// One pod, as its worker and the work under way share it. Each part keeps what it alone changes; all of it can be found out again,
/// and a restarted agent begins with none of it.
pub(crate) struct PodContext {
    pub(super) node: Arc<AgentContext>,
    pub(super) uid: PodUid,
    pub(super) name: FullName,
    /// The runtime's state of the pod.
    pub(super) reader: PodStateReader,
    /// The objects that the pod refers to.
    pub(super) objects: ReferencedObjects,
    /// Images for its containers.
    pub(super) puller: ImagePuller,
    /// Creates and starts sandboxes and containers.
    pub(super) starter: Starter,
    /// Makes the status and passes it to the status manager.
    pub(super) publisher: Publisher,
    /// The results of probes, by container.
    pub(super) probes: Guarded<ProbeResults>,
    /// How many of its probes are under way at once.
    pub(super) probe_slots: ProbeSlots,
}

impl PodContext {
    pub(super) fn new(node: Arc<AgentContext>, uid: PodUid, name: FullName) -> Self {
        Self {
            reader: PodStateReader::new(&uid, &name),
            objects: ReferencedObjects::default(),
            puller: ImagePuller::default(),
            starter: Starter::new(node.config.longest_crash_backoff),
            publisher: Publisher::default(),
            probes: Guarded::default(),
            probe_slots: ProbeSlots::of_pod(),
            node,
            uid,
            name,
        }
    }

    /// The time on the clock that never jumps.
    pub(super) fn now(&self) -> Mono {
        self.node.seams.clock.mono()
    }

    pub(super) fn forget_probes(&self) {
        *self.probes.lock() = ProbeResults::default();
        self.node.metrics.probes.forget(&self.uid);
    }

    /// A container that the runtime has no more has no results either.
    pub(super) fn forget_probes_of_gone_containers(&self, view: &PodView) {
        self.probes.lock().retain(|id| view.containers.iter().any(|container| container.id == *id));
    }

    /// Reports something that takes its time, until what this returns is dropped.
    #[must_use]
    pub(super) fn begin_activity(&self, what: Activity) -> ActivityGuard {
        self.node.report_store.begin_activity(&self.uid, what, None)
    }

    /// The same for one of its containers.
    #[must_use]
    pub(super) fn begin_container_activity(
        &self,
        container: &str,
        what: Activity,
    ) -> ActivityGuard {
        self.node.report_store.begin_activity(&self.uid, what, Some(container))
    }

    /// Reports that the pod is taken away, unless it ends by itself or is built up again.
    pub(super) fn report_kill(&self, why: KillReason) {
        match why {
            KillReason::Terminal | KillReason::CgroupGone | KillReason::Rejected => {}
            KillReason::Deleted
            | KillReason::Removed
            | KillReason::Orphan
            | KillReason::Asked(_) => self.node.report_store.set_leaving(&self.uid),
        }
    }

    /// Records events of the pod; those of an orphan under the name that the runtime has for it.
    pub(super) fn record_events(
        &self,
        pod: Option<&Pod>,
        events: impl IntoIterator<Item = PodEvent>,
    ) {
        let by_name = || {
            let mut orphan = Pod::default();
            orphan.metadata.name = Some(self.name.name.clone());
            orphan.metadata.namespace = Some(self.name.namespace.clone());
            orphan.metadata.uid = Some(self.uid.to_string());
            Cow::Owned(orphan)
        };
        self.node.recorder.record(&pod.map_or_else(by_name, Cow::Borrowed), events);
    }
}
