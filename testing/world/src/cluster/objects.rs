//! The state of the API server: objects are created, changed, given a status.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use oarsman_core::cri_spec::Lookup;
use oarsman_core::event_queue::CountedEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::qos;
use oarsman_core::trust_bundle::TrustBundles;

use super::certificates::IssuedCertificates;
use super::history::{History, PublishedStatus, RecordedEvent};
use super::node::NodeState;
use super::tokens::IssuedTokens;
use super::{ApiFailure, ClusterChange};
use crate::clock::WorldClock;
use crate::rng::Rng;
use crate::trace::{Trace, TraceEntry};

/// The state of the server, and the parts of the world it uses.
pub(super) struct FakeClusterState {
    pub(super) clock: WorldClock,
    pub(super) trace: Trace,
    rng: Rng,
    pub(super) pods: BTreeMap<FullName, Pod>,
    /// ConfigMaps and Secrets.
    pub(super) config: Lookup,
    /// Service accounts that were created.
    pub(super) accounts: BTreeMap<FullName, ServiceAccount>,
    /// Trust bundles by name.
    pub(super) trust_bundles: TrustBundles,
    /// Certificates that were issued.
    pub(super) certificates: IssuedCertificates,
    /// Tokens that were issued.
    pub(super) tokens: IssuedTokens,
    /// The newest resource version.
    pub(super) version: u64,
    pub(super) history: History,
    pub(super) node: NodeState,
    /// When the outage ends, if there is one.
    pub(super) away_until: Option<Duration>,
}

impl FakeClusterState {
    pub(super) fn new(clock: WorldClock, trace: Trace, rng: Rng) -> Self {
        Self {
            clock,
            trace,
            rng,
            pods: BTreeMap::new(),
            config: Lookup::default(),
            accounts: BTreeMap::new(),
            trust_bundles: TrustBundles::new(),
            certificates: IssuedCertificates::default(),
            tokens: IssuedTokens::default(),
            version: 0,
            history: History::default(),
            node: NodeState::default(),
            away_until: None,
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.away_until.is_some_and(|back| self.clock.elapsed() < back)
    }

    pub(super) fn create(&mut self, mut pod: Pod) -> Option<Pod> {
        pod.metadata.namespace.get_or_insert_with(|| "default".to_owned());
        if self.pods.contains_key(&pod.full_name()) {
            return None;
        }
        pod.metadata = ObjectMeta {
            uid: pod.metadata.uid.filter(|uid| !uid.is_empty()).or_else(|| Some(self.new_uid())),
            creation_timestamp: Some(self.now()),
            generation: Some(1),
            deletion_timestamp: None,
            deletion_grace_period_seconds: None,
            ..pod.metadata
        };
        pod.status = Some(PodStatus {
            phase: Some("Pending".to_owned()),
            qos_class: Some(qos::class(&pod).as_str().to_owned()),
            ..PodStatus::default()
        });
        self.trace_change(&pod, ClusterChange::Created);
        Some(self.store(pod))
    }

    pub(super) fn update(&mut self, name: &FullName, change: impl FnOnce(&mut Pod)) -> Option<Pod> {
        let old = self.pods.get(name)?;
        let mut new = old.clone();
        change(&mut new);
        new.metadata = with_labels_of(old.metadata.clone(), new.metadata);
        if new == *old {
            return Some(new);
        }
        let generation = old.metadata.generation.unwrap_or(0) + i64::from(new.spec != old.spec);
        new.metadata.generation = Some(generation);
        self.trace_change(&new, ClusterChange::Updated { generation });
        Some(self.store(new))
    }

    pub(super) fn publish(
        &mut self,
        name: &FullName,
        uid: &PodUid,
        status: PodStatus,
    ) -> Result<(), ApiFailure> {
        let mut pod = self.of_uid(name, uid)?.clone();
        let phase = status.phase.clone().unwrap_or_default();
        self.trace_change(&pod, ClusterChange::Published { phase });
        let (at, uid) = (self.clock.elapsed(), uid.clone());
        self.history.statuses.push(PublishedStatus { at, uid, status: status.clone() });
        // A status without a change makes no new version.
        if pod.status.replace(status.clone()) != Some(status) {
            self.store(pod);
        }
        Ok(())
    }

    pub(super) fn record(&mut self, counted: CountedEvent) {
        let CountedEvent { uid, event, record, .. } = counted;
        let (at, name, count) = (self.clock.elapsed(), record.name, record.count);
        self.history.record(RecordedEvent { at, uid, event, name, count });
    }

    /// The pod of that name, if it has that UID.
    pub(super) fn of_uid(&self, name: &FullName, uid: &PodUid) -> Result<&Pod, ApiFailure> {
        self.pods.get(name).filter(|pod| pod.uid() == *uid).ok_or(ApiFailure::Gone)
    }

    /// Stores a pod as the next version, and returns it.
    pub(super) fn store(&mut self, mut pod: Pod) -> Pod {
        self.version += 1;
        pod.metadata.resource_version = Some(self.version.to_string());
        self.pods.insert(pod.full_name(), pod.clone());
        pod
    }

    /// The wall clock as the API has it: in whole seconds.
    pub(super) fn now(&self) -> Time {
        Time(Timestamp::from_second(self.clock.wall().as_second()).unwrap_or_default())
    }

    pub(super) fn trace_change(&self, pod: &Pod, change: ClusterChange) {
        let (uid, name) = (pod.uid().to_string(), pod.full_name().to_string());
        self.trace.append(TraceEntry::Cluster { uid, name, change });
    }

    pub(super) fn new_uid(&mut self) -> String {
        let mut digits = format!("{:016x}{:016x}", self.rng.next_u64(), self.rng.next_u64());
        [8, 13, 18, 23].into_iter().for_each(|place| digits.insert(place, '-'));
        digits
    }
}

/// Of a user's change to metadata only labels and annotations are taken.
fn with_labels_of(old: ObjectMeta, new: ObjectMeta) -> ObjectMeta {
    ObjectMeta { labels: new.labels, annotations: new.annotations, ..old }
}
