//! The Cluster seam: what the agent needs of an API server.
//!
//! A node of a cluster has an [`ApiServer`] behind it, any other is [`Standalone`], and a test has a simulated one. Watches,
//! retries of connections and their jitter stay behind the seam, so that the simulation is not disturbed by them.

mod api;
pub mod credentials;
mod node;
pub mod review;
mod standalone;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{Pod, PodStatus, ServiceAccount};
use oarsman_core::cri_spec::Lookup;
use oarsman_core::event_queue::CountedEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::references::ObjectChange;
use oarsman_seam::{Call, CallFault, SeamError, seam};

pub use api::{
    ApiServer, Freshness, ObjectSettings, PodCertificateStates, ProjectionGates, RequestLimits,
    RequestRate,
};
pub use node::{NodeObject, NodeObjectLayer, NodeStates, Registration};
pub use standalone::Standalone;

/// What a call to the cluster gives.
pub type Result<T> = std::result::Result<T, ClusterError>;

/// Every pod that is bound to this node, all of them each time something changed. A pod that has not changed should be the very
/// same as before.
pub type PodSets = BoxStream<'static, Vec<Arc<Pod>>>;

/// What pods refer to and is not what it was, one by one.
pub type ObjectChanges = BoxStream<'static, ObjectChange>;

/// What the agent wants of an API server.
#[seam]
pub trait Cluster: Send + Sync + 'static {
    /// The pods bound to this node, now and whenever one changes; none when there is no cluster to ask. The
    /// stream outlives every loss of the connection.
    fn pods(&self) -> Option<PodSets>;

    /// The ConfigMaps, Secrets and runtime class that a pod refers to, as far as they exist, the tokens of its account, the
    /// trust bundles and the certificates that its volumes hold, and the services that its variables tell of. It is asked for at each sync of the pod. A static pod that refers
    /// to nothing is answered also while the API server is away.
    #[seam(call = "the objects", object = ClusterError::pod(&pod.full_name()))]
    async fn lookup(&self, pod: &Pod) -> Result<Lookup>;

    /// A service account as the API server has it now; credential providers are shown some of its annotations.
    #[seam(call = "the account", object = ClusterError::service_account(name))]
    async fn service_account(&self, name: &FullName) -> Result<ServiceAccount>;

    /// A token of a pod's service account for that audience, bound to the pod, for a credential provider. The UID of the account is a
    /// precondition.
    #[seam(call = "a token", object = ClusterError::pod(&pod.full_name()))]
    async fn service_account_token(
        &self,
        pod: &Pod,
        account: &str,
        audience: &str,
    ) -> Result<String>;

    /// Nothing of that pod runs any more: objects that no other pod refers to need not be watched any longer.
    fn forget(&self, pod: &PodUid);

    /// Objects that pods refer to and that have changed since they were looked up, so that their pods sync again. There may be too many.
    /// The stream outlives every loss of the connection.
    fn object_changes(&self) -> ObjectChanges;

    /// Writes a pod's status down. The UID is a precondition: a namesake's status is never touched.
    #[seam(call = "the status", object = ClusterError::pod(pod))]
    async fn publish(&self, pod: &FullName, uid: &PodUid, status: &PodStatus) -> Result<()>;

    /// Creates the mirror pod of a static pod. An existing pod of its name is left alone: the stream of pods tells which one it is.
    #[seam(call = "the mirror", object = ClusterError::pod(&mirror.full_name()))]
    async fn create_mirror_pod(&self, mirror: &Pod) -> Result<()>;

    /// Deletes a pod's object at once, provided it still has this UID.
    #[seam(call = "the deletion", object = ClusterError::pod(pod))]
    async fn delete(&self, pod: &FullName, uid: &PodUid) -> Result<()>;

    /// The node's own object; none when there is no cluster that it could belong to.
    fn node(&self) -> Option<Arc<dyn NodeObject>> {
        None
    }

    /// Records what happened to a pod: creates the event, or updates the count of the one that has its name. It may be repeated.
    #[seam(call = "an event", object = ClusterError::pod(&event.pod))]
    async fn record(&self, event: &CountedEvent) -> Result<()>;
}

/// Why the cluster did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// There is no such object, or one of another UID has its name.
    #[error("{object} is not there any more")]
    Gone {
        /// What it is and what it is called, such as `pod web_default`.
        object: String,
    },
    /// It refused the request, and will refuse it again until something is changed in the cluster.
    #[error("the API server refused {call} of {object}: {why}")]
    Refused {
        /// What was asked for.
        call: &'static str,
        /// What it is and what it is called.
        object: String,
        /// The API server's message.
        why: String,
    },
    /// It has too much to do, and did nothing.
    #[error("the API server is busy: {call} of {object} may be asked for again in {wait:?}")]
    Busy {
        /// What was asked for.
        call: &'static str,
        /// What it is and what it is called.
        object: String,
        /// How long it asked to be left alone.
        wait: Duration,
    },
    /// It did not answer, or could not do it now; it may have done it all the same.
    #[error("the API server did not serve {call} of {object}: {why}")]
    Unavailable {
        /// What was asked for.
        call: &'static str,
        /// What it is and what it is called.
        object: String,
        /// The API server's message.
        why: String,
    },
}

impl SeamError for ClusterError {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        let Call { name: call, object } = call.clone();
        match fault {
            CallFault::Refused => Self::Refused { call, object, why: fault.to_string() },
            CallFault::Busy(wait) => Self::Busy { call, object, wait },
            CallFault::TimedOut(_) | CallFault::Unavailable | CallFault::Unknown => {
                Self::Unavailable { call, object, why: fault.to_string() }
            }
        }
    }
}

impl ClusterError {
    /// A pod as errors name it.
    pub fn pod(name: &FullName) -> String {
        format!("pod {name}")
    }

    /// A service account as errors name it.
    pub fn service_account(name: &FullName) -> String {
        format!("serviceaccount {}/{}", name.namespace, name.name)
    }
}
