//! Tokens of service accounts, each bound to one pod and refreshed before it expires.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::references::Change;
use oarsman_core::token::{self, TokenWish};
use oarsman_sync::Guarded;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::super::error::failed;
use super::super::jitter::{Waits, dice};
use super::CALL;
use super::cell::Cell;
use super::news::News;
use crate::{ClusterError, Result};

/// Tokens by the pod that they are bound to.
pub(super) struct Tokens {
    client: Client,
    news: News,
    /// Never held over an await.
    kept: Guarded<BTreeMap<(PodUid, TokenWish), Kept>>,
}

struct Kept {
    token: Cell<Arc<str>>,
    /// Requests the next token in time; aborted with this entry.
    _keeper: AbortOnDropHandle<()>,
}

impl Tokens {
    pub(super) fn new(client: Client, news: News) -> Self {
        Self { client, news, kept: Guarded::default() }
    }

    /// The tokens that a pod has in its volumes, or why it gets none.
    pub(super) async fn find(
        &self,
        pod: &Pod,
    ) -> Result<BTreeMap<TokenWish, std::result::Result<String, String>>> {
        let answers = self.claim(pod).into_iter().map(|(wish, token)| async move {
            let late = |limit| unavailable(pod, format!("no answer within {limit:?}"));
            match token.answer(late).await {
                Ok(token) => Ok((wish, Ok(token.as_ref().to_owned()))),
                // An error of the pod: its owner can fix it.
                Err(ClusterError::Refused { why, .. }) => Ok((wish, Err(why))),
                Err(gone @ ClusterError::Gone { .. }) => Ok((wish, Err(gone.to_string()))),
                Err(error) => Err(error),
            }
        });
        Ok(try_join_all(answers).await?.into_iter().collect())
    }

    pub(super) fn forget(&self, pod: &PodUid) {
        self.kept.lock().retain(|(uid, _), _| uid != pod);
    }

    fn claim(&self, pod: &Pod) -> Vec<(TokenWish, Cell<Arc<str>>)> {
        let (uid, wishes) = (pod.uid(), token::wishes(pod));
        let mut kept = self.kept.lock();
        kept.retain(|(of, wish), _| *of != uid || wishes.contains(wish));
        let claim = |wish: TokenWish| {
            let entry = kept.entry((uid.clone(), wish.clone()));
            let entry = entry.or_insert_with(|| self.keep(pod, wish.clone()));
            (wish, entry.token.clone())
        };
        wishes.into_iter().map(claim).collect()
    }

    fn keep(&self, pod: &Pod, wish: TokenWish) -> Kept {
        let token = Cell::new();
        let keeper = Keeper {
            client: self.client.clone(),
            news: self.news.clone(),
            pod: pod.full_name(),
            uid: pod.uid(),
            account: token::account(pod).to_owned(),
            wish,
            token: token.clone(),
        };
        Kept { token, _keeper: AbortOnDropHandle::new(tokio::spawn(keeper.run())) }
    }
}

/// Refreshes one token of one pod.
struct Keeper {
    client: Client,
    news: News,
    pod: FullName,
    uid: PodUid,
    account: String,
    wish: TokenWish,
    token: Cell<Arc<str>>,
}

impl Keeper {
    async fn run(self) {
        let (mut waits, mut failures) = (Waits::FOR_A_FIRST_ANSWER, 0);
        // Age is counted from the answer by a clock that only goes forward: the API server's may differ from ours.
        let mut expires = None;
        loop {
            let asked = Instant::now();
            match self.request().await {
                Ok((token, lifetime)) => {
                    (waits, failures) = (Waits::PATIENT, 0);
                    expires = Some(asked + lifetime);
                    if self.token.learn(token) {
                        self.news.tell(&Change::Token(self.uid.clone()));
                    }
                    sleep(token::used_for(lifetime, dice())).await;
                }
                Err(error) => {
                    tracing::debug!(pod = %self.pod, uid = %self.uid, %error, "service account token not renewed, will retry");
                    match expires.is_some_and(|expires| expires <= asked) {
                        true => self.token.lose(error),
                        false => self.token.fail(error),
                    }
                    failures += 1;
                    sleep(waits.after(failures)).await;
                }
            }
        }
    }

    /// A new token, and how long it is good for.
    async fn request(&self) -> Result<(Arc<str>, Duration)> {
        let accounts: Api<ServiceAccount> =
            Api::namespaced(self.client.clone(), &self.pod.namespace);
        let (asked, params) = (self.body(), PostParams::default());
        let answer = accounts.create_token_request(&self.account, &params, &asked);
        let object = format!("serviceaccount {}/{}", self.pod.namespace, self.account);
        let given = match timeout(CALL, answer).await {
            Ok(Ok(given)) => given,
            Ok(Err(error)) => return Err(failed("token", &object, &error)),
            Err(_) => {
                let why = format!("no answer within {CALL:?}");
                return Err(ClusterError::Unavailable { call: "token", object, why });
            }
        };
        // It may be good for longer or shorter than was asked for.
        let said = given.spec.and_then(|spec| spec.expiration_seconds);
        let seconds = said.unwrap_or(self.wish.seconds);
        let lifetime = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let token = given.status.and_then(|status| status.token);
        match token.filter(|token| !token.is_empty()) {
            Some(token) => Ok((token.into(), lifetime)),
            None => {
                let why = "the answer holds no token".to_owned();
                Err(ClusterError::Unavailable { call: "token", object, why })
            }
        }
    }

    fn body(&self) -> TokenRequest {
        let audience = Some(&self.wish.audience).filter(|audience| !audience.is_empty());
        let bound = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(self.pod.name.clone()),
            uid: Some(self.uid.to_string()),
        };
        let spec = TokenRequestSpec {
            audiences: audience.map(|audience| vec![audience.clone()]),
            bound_object_ref: Some(bound),
            expiration_seconds: Some(self.wish.seconds),
        };
        TokenRequest { spec: Some(spec), ..TokenRequest::default() }
    }
}

fn unavailable(pod: &Pod, why: String) -> ClusterError {
    let object = format!("serviceaccount {}/{}", pod.full_name().namespace, token::account(pod));
    ClusterError::Unavailable { call: "token", object, why }
}
