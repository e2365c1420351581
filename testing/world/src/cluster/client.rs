//! The API server for an agent: every call goes over the link of its incarnation.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Pod, PodStatus, ServiceAccount};
use oarsman_cluster::{
    Cluster, ClusterError, ClusterLayer, NodeObject, ObjectChanges, PodSets, Result,
};
use oarsman_core::cri_spec::Lookup;
use oarsman_core::event_queue::CountedEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::pod_certificate::certificate_sources;
use oarsman_core::references::{claims, references, runtime_class};
use oarsman_core::token;
use oarsman_core::trust_bundle::projections;
use oarsman_seam::{self as seam, Middleware};

use super::node::LinkedNode;
use super::{ApiFailure, FakeCluster, config, watch};
use crate::faults::Faults;
use crate::link::{AbandonPolicy, Link, LinkCall, LinkMiddleware};

const LOOKUP: &str = "the objects";
/// How long a call may take.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(10);

/// The API server over a link.
pub fn connect(cluster: FakeCluster, link: Link, faults: Faults) -> Arc<dyn Cluster> {
    let inner = Arc::new(ClusterBackend(cluster.clone()));
    let middleware = LinkMiddleware::new(link.clone(), MAX_WAIT, policy);
    Arc::new(LinkedCluster { inner, middleware, connection: ClusterLink { cluster, link, faults } })
}

/// Reads may be cancelled; everything else takes effect also when its caller is gone.
pub(super) fn policy(call: &str) -> AbandonPolicy {
    match call {
        "the objects" | "the reading" | "the account" => AbandonPolicy::Read,
        _ => AbandonPolicy::Change,
    }
}

#[derive(Clone)]
pub(super) struct ClusterLink {
    pub(super) cluster: FakeCluster,
    pub(super) link: Link,
    pub(super) faults: Faults,
}

/// The seam over a link: calls reach the server one by one, watches run here.
struct LinkedCluster {
    inner: Arc<dyn Cluster>,
    middleware: LinkMiddleware,
    connection: ClusterLink,
}

#[async_trait]
impl ClusterLayer for LinkedCluster {
    type Middleware = LinkMiddleware;

    fn inner(&self) -> &Arc<dyn Cluster> {
        &self.inner
    }

    fn middleware(&self) -> &LinkMiddleware {
        &self.middleware
    }

    fn pods(&self) -> Option<PodSets> {
        Some(watch::pod_sets(self.connection.clone()))
    }

    /// Services are not read here, so that only objects that a pod refers to have to be asked for.
    async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        let is_alone = references(pod).is_empty() && token::token_requests(pod).is_empty();
        let is_alone =
            is_alone && projections(pod).is_empty() && certificate_sources(pod).is_empty();
        if is_alone && runtime_class(pod).is_none() && claims(pod).is_empty() {
            return Ok(Lookup::default());
        }
        let call = seam::Call { name: LOOKUP, object: ClusterError::pod(&pod.full_name()) };
        let (server, pod) = (Arc::clone(&self.inner), pod.clone());
        self.middleware.around(call, async move { server.lookup(&pod).await }).await
    }

    fn object_changes(&self) -> ObjectChanges {
        config::changes(self.connection.clone())
    }

    fn node(&self) -> Option<Arc<dyn NodeObject>> {
        Some(LinkedNode::over(self.connection.clone()))
    }
}

/// What calls do at the server. It has no watches: those run over the link.
struct ClusterBackend(FakeCluster);

#[async_trait]
impl Cluster for ClusterBackend {
    fn pods(&self) -> Option<PodSets> {
        None
    }

    async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        self.0.config(pod).map_err(|failure| failure.of(LOOKUP, &pod.full_name()))
    }

    async fn service_account(&self, name: &FullName) -> Result<ServiceAccount> {
        let found = self.0.service_account(name);
        found.map_err(|failure| failure.about("the account", &ClusterError::service_account(name)))
    }

    async fn service_account_token(
        &self,
        pod: &Pod,
        account: &str,
        audience: &str,
    ) -> Result<String> {
        let token = self.0.provider_token(pod, account, audience);
        token.map_err(|failure| failure.of("a token", &pod.full_name()))
    }

    /// It has no watches to end.
    fn forget(&self, _: &PodUid) {}

    fn object_changes(&self) -> ObjectChanges {
        stream::pending().boxed()
    }

    async fn publish(&self, pod: &FullName, uid: &PodUid, status: &PodStatus) -> Result<()> {
        let published = self.0.publish(pod, uid, status.clone());
        published.map_err(|failure| failure.of("the status", pod))
    }

    async fn create_mirror_pod(&self, mirror: &Pod) -> Result<()> {
        // A mirror pod that exists already stays.
        self.0.create(mirror.clone());
        Ok(())
    }

    async fn delete(&self, pod: &FullName, uid: &PodUid) -> Result<()> {
        self.0.delete_by_agent(pod, uid).map_err(|failure| failure.of("the deletion", pod))
    }

    async fn record(&self, event: &CountedEvent) -> Result<()> {
        let recorded = self.0.record(event.clone());
        recorded.map_err(|failure| failure.of("an event", &event.pod))
    }
}

impl ClusterLink {
    /// Every pod, and the resource version of the list.
    pub(super) async fn list(&self) -> Result<(u64, Vec<Pod>)> {
        const CALL: &str = "ListPods";
        let call = LinkCall::new(CALL, "", AbandonPolicy::Read).within(MAX_WAIT);
        let cluster = self.cluster.clone();
        let list = async move { cluster.snapshot().map_err(|failure| failure.about(CALL, "pods")) };
        self.link.call(call, list).await
    }
}

impl ApiFailure {
    /// The error for the agent, about a pod.
    fn of(self, call: &'static str, pod: &FullName) -> ClusterError {
        self.about(call, &ClusterError::pod(pod))
    }

    /// The error for the agent, about any object.
    pub(super) fn about(self, call: &'static str, object: &str) -> ClusterError {
        let object = object.to_owned();
        match self {
            Self::Gone => ClusterError::Gone { object },
            Self::Unavailable(why) => ClusterError::Unavailable { call, object, why },
        }
    }
}
