//! The API server as an agent reaches it: every call over its life's line.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_cluster::{Cluster, ClusterError, NodeObject, ObjectChanges, PodSets, Result};
use oarsman_core::config::Lookup;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::references::{references, runtime_class};
use oarsman_core::token;

use super::node::NodeConnection;
use super::{Failure, FakeCluster, config, watch};
use crate::faults::Faults;
use crate::line::{Breakage, Call, Conduct, Line, LineError};

/// How long a call may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The API server at the other end of a line.
pub fn connect(cluster: FakeCluster, line: Line, faults: Faults) -> Arc<dyn Cluster> {
    Arc::new(Connection { cluster, line, faults })
}

#[derive(Clone)]
pub(super) struct Connection {
    pub(super) cluster: FakeCluster,
    pub(super) line: Line,
    pub(super) faults: Faults,
}

#[async_trait]
impl Cluster for Connection {
    fn pods(&self) -> Option<PodSets> {
        Some(watch::pod_sets(self.clone()))
    }

    /// Services are read by nobody here, so that only what a pod refers to has to be asked for.
    async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        const CALL: &str = "LookUp";
        let is_alone = references(pod).is_empty() && token::wishes(pod).is_empty();
        if is_alone && runtime_class(pod).is_none() {
            return Ok(Lookup::default());
        }
        let name = pod.full_name();
        let call = Call::new(CALL, name.to_string(), Conduct::Read).within(PATIENCE);
        let (cluster, pod) = (self.cluster.clone(), pod.clone());
        let found = self.line.call(call, async move { cluster.config(&pod) }).await;
        found.map_err(|failure: Failure| failure.of(CALL, &name))
    }

    /// It watches nothing that it would have to give up.
    fn forget(&self, _: &PodUid) {}

    fn object_changes(&self) -> ObjectChanges {
        config::changes(self.clone())
    }

    async fn publish(&self, pod: &FullName, uid: &PodUid, status: &PodStatus) -> Result<()> {
        const CALL: &str = "PublishStatus";
        let (name, uid, status) = (pod.clone(), uid.clone(), status.clone());
        let effect = move |cluster: FakeCluster| cluster.publish(&name, &uid, status);
        self.change(CALL, pod, effect).await.map_err(|failure| failure.of(CALL, pod))
    }

    async fn reflect(&self, mirror: &Pod) -> Result<()> {
        const CALL: &str = "CreateMirror";
        let (name, mirror) = (mirror.full_name(), mirror.clone());
        let effect = move |cluster: FakeCluster| {
            // One that is there already stays.
            cluster.create(mirror);
            Ok(())
        };
        self.change(CALL, &name, effect).await.map_err(|failure| failure.of(CALL, &name))
    }

    async fn delete(&self, pod: &FullName, uid: &PodUid) -> Result<()> {
        const CALL: &str = "DeletePod";
        let (name, uid) = (pod.clone(), uid.clone());
        let effect = move |cluster: FakeCluster| cluster.delete_by_agent(&name, &uid);
        self.change(CALL, pod, effect).await.map_err(|failure| failure.of(CALL, pod))
    }

    fn node(&self) -> Option<Arc<dyn NodeObject>> {
        Some(Arc::new(NodeConnection(self.clone())))
    }

    async fn record(&self, pod: &Pod, event: &PodEvent) {
        let (uid, event) = (pod.uid(), event.clone());
        let effect = move |cluster: FakeCluster| cluster.record(uid, event);
        // What is not heard is dropped.
        self.change("RecordEvent", &pod.full_name(), effect).await.ok();
    }
}

impl Connection {
    /// Every pod, and the version of that list.
    pub(super) async fn list(&self) -> std::result::Result<(u64, Vec<Pod>), Failure> {
        let call = Call::new("ListPods", "", Conduct::Read).within(PATIENCE);
        let cluster = self.cluster.clone();
        self.line.call(call, async move { cluster.snapshot() }).await
    }

    async fn change(
        &self,
        name: &'static str,
        pod: &FullName,
        effect: impl FnOnce(FakeCluster) -> std::result::Result<(), Failure> + Send + 'static,
    ) -> std::result::Result<(), Failure> {
        let call = Call::new(name, pod.to_string(), Conduct::Change).within(PATIENCE);
        let cluster = self.cluster.clone();
        self.line.call(call, async move { effect(cluster) }).await
    }
}

impl Failure {
    /// As the agent is told.
    fn of(self, call: &'static str, pod: &FullName) -> ClusterError {
        self.about(call, ClusterError::pod(pod))
    }

    /// As the agent is told of any object.
    pub(super) fn about(self, call: &'static str, object: String) -> ClusterError {
        match self {
            Self::Gone => ClusterError::Gone { object },
            Self::Refused => {
                ClusterError::Refused { call, object, why: "somebody else changed it".to_owned() }
            }
            Self::Busy(wait) => ClusterError::Busy { call, object, wait },
            Self::Unavailable(why) => ClusterError::Unavailable { call, object, why },
        }
    }
}

impl LineError for Failure {
    fn broken(_: &'static str, _: &str, how: Breakage) -> Self {
        Self::Unavailable(match how {
            Breakage::Refused => return Self::Refused,
            Breakage::Busy(wait) => return Self::Busy(wait),
            Breakage::Unavailable => "the connection broke".to_owned(),
            Breakage::Unknown => "something went wrong".to_owned(),
            Breakage::TimedOut(limit) => format!("no answer within {limit:?}"),
        })
    }

    fn kind(&self) -> String {
        match self {
            Self::Gone => "gone".to_owned(),
            Self::Refused => "refused".to_owned(),
            Self::Busy(_) => "busy".to_owned(),
            Self::Unavailable(why) => why.clone(),
        }
    }
}
