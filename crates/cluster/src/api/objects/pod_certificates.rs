//! Certificates of pods: a key for each source of a volume, a request to its signer, and the next one when the signer says.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1beta1::{PodCertificateRequest, PodCertificateRequestSpec};
use k8s_openapi::api::core::v1::{Node, Pod, PodCertificateProjection, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PostParams;
use kube::{Api, Client};
use oarsman_clock::Clock;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::pod_certificate::{
    CertificateSource, CertificateState, IssuedCertificate, PodCertificate, Refusal,
    RequestOutcome, certificate_sources, outcome,
};
use oarsman_core::references::ObjectChange;
use oarsman_core::token::service_account_name;
use oarsman_sync::{Guarded, TaskName, TaskPanics, restarted};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::super::error::failed;
use super::super::jitter::JitteredBackoff;
use super::CALL;
use super::cached_value::CachedValue;
use super::change_feed::ChangeFeed;
use super::pod_certificate_states::PodCertificateStates;
use super::pod_key::PodKey;
use super::watched_set::WatchedSet;
use crate::{ClusterError, Result};

/// The API server removes requests after a quarter of an hour; one that was not answered by then is made again.
const REQUEST_LIFETIME: Duration = Duration::from_secs(20 * 60);

/// What a pod gets for each source.
pub(super) type PodCertificates =
    BTreeMap<CertificateSource, std::result::Result<PodCertificate, String>>;

/// Certificates by pod and source.
pub(super) struct PodCertificateManager {
    requester: Arc<Requester>,
    panics: TaskPanics,
    states: PodCertificateStates,
    /// Never held over an await.
    cached: Guarded<BTreeMap<(PodUid, CertificateSource), CachedCertificate>>,
}

struct CachedCertificate {
    certificate: CachedValue<PodCertificate>,
    /// Requests the next one in time; aborted with this entry.
    _refresher: AbortOnDropHandle<()>,
}

/// What all requests are made with.
struct Requester {
    client: Client,
    node: String,
    clock: Arc<dyn Clock>,
    changes: ChangeFeed,
    /// The requests of this node: a node may not watch others.
    requests: WatchedSet<PodCertificateRequest>,
}

impl PodCertificateManager {
    pub(super) fn new(
        client: Client,
        node: &str,
        clock: Arc<dyn Clock>,
        changes: ChangeFeed,
        panics: TaskPanics,
        states: PodCertificateStates,
    ) -> Self {
        let requests = WatchedSet {
            client: client.clone(),
            panics: panics.clone(),
            task: TaskName::PodCertificateWatch,
            fields: format!("spec.nodeName={node}"),
            object: "podcertificaterequests",
            // Refreshers wait for the set itself.
            on_change: Arc::new(|_| ()),
            watch: OnceLock::new(),
        };
        let node = node.to_owned();
        let requester = Arc::new(Requester { client, node, clock, changes, requests });
        Self { requester, panics, states, cached: Guarded::default() }
    }

    /// The certificates that a pod has in its volumes, or why it has none.
    pub(super) async fn get_certificates(&self, pod: &Pod) -> Result<PodCertificates> {
        let answers = self.claim(pod).into_iter().map(|(source, certificate)| async move {
            match certificate.wait(|_| not_issued(pod)).await {
                Ok(certificate) => Ok((source, Ok(certificate))),
                // An error of the pod: its owner, or the signer's, can fix it.
                Err(ClusterError::Refused { why, .. }) => Ok((source, Err(why))),
                Err(gone @ ClusterError::Gone { .. }) => Ok((source, Err(gone.to_string()))),
                Err(error) => Err(error),
            }
        });
        Ok(try_join_all(answers).await?.into_iter().collect())
    }

    pub(super) fn forget(&self, pod: &PodUid) {
        self.cached.lock().retain(|(uid, _), _| uid != pod);
        self.states.forget(pod);
    }

    fn claim(&self, pod: &Pod) -> Vec<(CertificateSource, CachedValue<PodCertificate>)> {
        let (uid, sources) = (pod.uid(), certificate_sources(pod));
        let mut cached = self.cached.lock();
        let claim = |(source, projection): (CertificateSource, &PodCertificateProjection)| {
            let entry = cached.entry((uid.clone(), source.clone()));
            let entry = entry.or_insert_with(|| self.start_refresh(pod, &source, projection));
            (source, entry.certificate.clone())
        };
        sources.into_iter().map(claim).collect()
    }

    /// Volumes of a pod cannot be changed, so the source stays as it is.
    fn start_refresh(
        &self,
        pod: &Pod,
        source: &CertificateSource,
        projection: &PodCertificateProjection,
    ) -> CachedCertificate {
        let certificate = CachedValue::new();
        self.states.begin(&pod.uid(), source, &projection.signer_name);
        let refresher = Arc::new(CertificateRefresher {
            requester: Arc::clone(&self.requester),
            pod: pod.full_name(),
            uid: pod.uid(),
            account: service_account_name(pod).to_owned(),
            source: source.clone(),
            projection: projection.clone(),
            certificate: certificate.clone(),
            states: self.states.clone(),
        });
        let task = restarted(TaskName::PodCertificateRefresh, self.panics.clone(), move || {
            Arc::clone(&refresher).run()
        });
        CachedCertificate { certificate, _refresher: AbortOnDropHandle::new(tokio::spawn(task)) }
    }
}

/// Refreshes one certificate of one pod.
struct CertificateRefresher {
    requester: Arc<Requester>,
    pod: FullName,
    uid: PodUid,
    account: String,
    source: CertificateSource,
    projection: PodCertificateProjection,
    certificate: CachedValue<PodCertificate>,
    states: PodCertificateStates,
}

/// What became of a key and its request.
enum Obtained {
    Issued(PodCertificate, IssuedCertificate),
    /// The same request would be refused again.
    Refused(Refusal, String),
}

impl CertificateRefresher {
    async fn run(self: Arc<Self>) {
        let (mut backoff, mut failures) = (JitteredBackoff::FIRST_ANSWER, 0);
        let mut expires: Option<Instant> = None;
        loop {
            match self.obtain().await {
                Ok(Obtained::Issued(certificate, issued)) => {
                    (backoff, failures) = (JitteredBackoff::SLOW, 0);
                    let now = self.requester.clock.wall();
                    expires = Instant::now().checked_add(issued.expires_after(now));
                    self.states.set(&self.uid, &self.source, issued.state());
                    if self.certificate.set(certificate) {
                        self.tell();
                    }
                    sleep(issued.refresh_after(now)).await;
                }
                Ok(Obtained::Refused(refusal, why)) => {
                    let state = CertificateState::Refused(refusal);
                    self.states.set(&self.uid, &self.source, state);
                    return self.end_with(why, expires).await;
                }
                Err(error) => {
                    tracing::debug!(pod = %self.pod, uid = %self.uid, %error, "pod certificate not renewed, will retry");
                    match expires.is_some_and(|expires| expires <= Instant::now()) {
                        true => self.certificate.expire(error),
                        false => self.certificate.set_failed(error),
                    }
                    failures += 1;
                    sleep(backoff.after(failures)).await;
                }
            }
        }
    }

    /// A refusal is final. The certificate that the pod has counts until it expires.
    async fn end_with(&self, why: String, expires: Option<Instant>) {
        let object = ClusterError::pod(&self.pod);
        let error = ClusterError::Refused { call: "a certificate", object, why };
        self.certificate.set_failed(error.clone());
        if let Some(expires) = expires {
            sleep_until(expires).await;
            self.certificate.expire(error);
        }
        self.tell();
        std::future::pending::<()>().await;
    }

    fn tell(&self) {
        self.requester.changes.publish(&ObjectChange::PodCertificate(self.uid.clone()));
    }

    /// Makes a key, requests a certificate for it, and waits for the signer.
    async fn obtain(&self) -> Result<Obtained> {
        let made = PodKey::generate(&self.projection.key_type);
        let key = match made {
            Ok(key) => key,
            Err(why) => return Ok(Obtained::Refused(Refusal::Failed, why)),
        };
        let request = self.request(&key).await?;
        // Watched before it is created, so that no answer is missed.
        let requests = self.requester.requests.all();
        let api: Api<PodCertificateRequest> = self.api();
        let params = PostParams::default();
        let object = ClusterError::pod(&self.pod);
        let created =
            answer("a certificate", &object, api.create(&params, &request)).await?.metadata.name;
        let name =
            FullName { name: created.unwrap_or_default(), namespace: self.pod.namespace.clone() };
        let mut was_seen = false;
        let decided = requests.wait_until(|requests| {
            let Some(request) = requests.get(&name) else {
                // One that is gone is made again.
                return was_seen.then_some(RequestOutcome::Pending);
            };
            was_seen = true;
            Some(outcome(request.status.as_ref())).filter(|one| *one != RequestOutcome::Pending)
        });
        let why = match timeout(REQUEST_LIFETIME, decided).await {
            Ok(RequestOutcome::Issued(issued)) => {
                let (key, chain) = (key.pem().into(), issued.chain.as_str().into());
                return Ok(Obtained::Issued(PodCertificate { key, chain }, issued));
            }
            Ok(RequestOutcome::Refused(how, why)) => return Ok(Obtained::Refused(how, why)),
            Ok(RequestOutcome::Pending) => format!("podcertificaterequest {name} was deleted"),
            Err(_) => format!("podcertificaterequest {name} was not answered"),
        };
        Err(ClusterError::Refused { call: "a certificate", object, why })
    }

    async fn request(&self, key: &PodKey) -> Result<PodCertificateRequest> {
        let (node, account) = (&self.requester.node, &self.account);
        let nodes: Api<Node> = Api::all(self.requester.client.clone());
        let node_object = answer("get", &format!("node {node}"), nodes.get(node)).await?;
        let accounts: Api<ServiceAccount> = self.api();
        let name = FullName { name: account.clone(), namespace: self.pod.namespace.clone() };
        let object = ClusterError::service_account(&name);
        let account_object = answer("get", &object, accounts.get(account)).await?;
        let object = ClusterError::pod(&self.pod);
        let unsigned = |why| ClusterError::Unavailable { call: "a certificate", object, why };
        let (projection, stub) = (self.projection.clone(), key.request().map_err(unsigned)?);
        let spec = PodCertificateRequestSpec {
            signer_name: projection.signer_name,
            max_expiration_seconds: projection.max_expiration_seconds,
            unverified_user_annotations: projection.user_annotations,
            node_name: node.clone(),
            node_uid: node_object.metadata.uid.unwrap_or_default(),
            pod_name: self.pod.name.clone(),
            pod_uid: self.uid.to_string(),
            service_account_name: account.clone(),
            service_account_uid: account_object.metadata.uid.unwrap_or_default(),
            stub_pkc_s10_request: ByteString(stub),
            ..PodCertificateRequestSpec::default()
        };
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: self.pod.name.clone(),
            uid: self.uid.to_string(),
            ..OwnerReference::default()
        };
        let metadata = ObjectMeta {
            generate_name: Some("req-".to_owned()),
            namespace: Some(self.pod.namespace.clone()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        };
        Ok(PodCertificateRequest { metadata, spec, status: None })
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.requester.client.clone(), &self.pod.namespace)
    }
}

/// A call with a deadline.
async fn answer<T>(
    call: &'static str,
    object: &str,
    answer: impl Future<Output = kube::Result<T>>,
) -> Result<T> {
    match timeout(CALL, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failed(call, object, &error)),
        Err(_) => {
            let (object, why) = (object.to_owned(), format!("no answer within {CALL:?}"));
            Err(ClusterError::Unavailable { call, object, why })
        }
    }
}

fn not_issued(pod: &Pod) -> ClusterError {
    let object = ClusterError::pod(&pod.full_name());
    let why = "the signer has not issued the certificate yet".to_owned();
    ClusterError::Refused { call: "a certificate", object, why }
}
