//! A real API server, by way of kube.
//!
//! [`pods`] says which pods are bound to this node, [`status`] writes down how they are, [`mirror`] shows static pods there,
//! [`events`] records what happened, [`objects`] keeps what pods refer to. What the API server is known to hold of our pods stands in
//! the [`store`], so that a change of a status costs one call and no question before it. Nothing needs more rights than a node has.

mod error;
mod events;
mod jitter;
mod mirror;
mod node;
mod objects;
mod pods;
mod rate_limit;
mod retry_after;
mod status;
mod store;
#[cfg(test)]
mod testing;
mod watch;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Pod, PodStatus, ServiceAccount};
use kube::{Api, Client, Resource};
use oarsman_clock::Clock;
use oarsman_core::cri_spec::Lookup;
use oarsman_core::event_queue::CountedEvent;
use oarsman_core::ids::{FullName, PodUid};

use crate::{Cluster, NodeObject, ObjectChanges, PodSets, Result};
use node::ServedNode;
use objects::ObjectManager;
use rate_limit::limited;
use store::PodStore;

pub use objects::{Freshness, ObjectSettings, PodCertificateStates, ProjectionGates};
pub use rate_limit::{RequestLimits, RequestRate};

/// The field manager that the API server records for what we write.
const FIELD_MANAGER: &str = "kubelet";

/// An API server that this node belongs to.
pub struct ApiServer {
    /// Requests about pods wait for their turn (`kubeAPIQPS`).
    client: Client,
    /// So do events (`eventRecordQPS`).
    events: Client,
    /// Heartbeats wait for nothing.
    unlimited: Client,
    clock: Arc<dyn Clock>,
    node: String,
    store: Arc<PodStore>,
    objects: ObjectManager,
}

impl ApiServer {
    /// The API server of that client, for the node of that name. Needs a tokio runtime.
    pub fn new(client: Client, node: &str, clock: Arc<dyn Clock>) -> Self {
        let client = retry_after::with_retry_after(client);
        Self {
            objects: ObjectManager::new(
                client.clone(),
                node,
                Arc::clone(&clock),
                ObjectSettings::default(),
            ),
            events: client.clone(),
            unlimited: client.clone(),
            client,
            node: node.to_owned(),
            store: Arc::default(),
            clock,
        }
    }

    /// The same, which keeps what pods refer to in that way, and makes no more requests than its rate allows, and no more for events
    /// than `events`; none for any number.
    #[must_use]
    pub fn with_settings(self, settings: ObjectSettings, events: Option<RequestRate>) -> Self {
        let client = &self.unlimited;
        Self {
            client: limited(client.clone(), settings.rate),
            events: match events {
                Some(rate) => limited(client.clone(), rate),
                None => client.clone(),
            },
            objects: ObjectManager::new(
                client.clone(),
                &self.node,
                Arc::clone(&self.clock),
                settings,
            ),
            ..self
        }
    }

    /// Objects of a kind in a namespace.
    fn of<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("node", &self.node).finish_non_exhaustive()
    }
}

#[async_trait]
impl Cluster for ApiServer {
    fn pods(&self) -> Option<PodSets> {
        let pods = Api::all(self.client.clone());
        Some(pods::sets(pods, &self.node, Arc::clone(&self.store)))
    }

    async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        self.objects.lookup(pod).await
    }

    async fn service_account(&self, name: &FullName) -> Result<ServiceAccount> {
        self.objects.service_account(name).await
    }

    async fn service_account_token(
        &self,
        pod: &Pod,
        account: &str,
        audience: &str,
    ) -> Result<String> {
        self.objects.provider_token(pod, account, audience).await
    }

    fn forget(&self, pod: &PodUid) {
        self.objects.forget(pod);
    }

    fn object_changes(&self) -> ObjectChanges {
        self.objects.changes()
    }

    async fn publish(&self, pod: &FullName, uid: &PodUid, status: &PodStatus) -> Result<()> {
        self.write_status(pod, uid, status).await
    }

    async fn create_mirror_pod(&self, mirror: &Pod) -> Result<()> {
        self.create_mirror_pod_object(mirror).await
    }

    async fn delete(&self, pod: &FullName, uid: &PodUid) -> Result<()> {
        self.delete_pod(pod, uid).await
    }

    fn node(&self) -> Option<Arc<dyn NodeObject>> {
        Some(Arc::new(ServedNode::new(
            &self.unlimited,
            &self.events,
            &self.node,
            Arc::clone(&self.clock),
        )))
    }

    async fn record(&self, event: &CountedEvent) -> Result<()> {
        self.record_event(event).await
    }
}
