//! Tokens of service accounts, each bound to one pod and refreshed before it expires.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::references::ObjectChange;
use oarsman_core::token::{self, TokenRequestKey};
use oarsman_sync::{Guarded, TaskName, TaskPanics, restarted};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::super::jitter::{JitteredBackoff, random};
use super::cached_value::CachedValue;
use super::change_feed::ChangeFeed;
use super::token_request::TokenRequester;
use crate::{ClusterError, Result};

/// Tokens by the pod that they are bound to.
pub(super) struct TokenManager {
    client: Client,
    changes: ChangeFeed,
    panics: TaskPanics,
    /// Never held over an await.
    cached: Guarded<BTreeMap<(PodUid, TokenRequestKey), CachedToken>>,
}

struct CachedToken {
    token: CachedValue<Arc<str>>,
    /// Requests the next token in time; aborted with this entry.
    _refresher: AbortOnDropHandle<()>,
}

impl TokenManager {
    pub(super) fn new(client: Client, changes: ChangeFeed, panics: TaskPanics) -> Self {
        Self { client, changes, panics, cached: Guarded::default() }
    }

    /// The tokens that a pod has in its volumes, or why it gets none.
    pub(super) async fn get_service_account_tokens(
        &self,
        pod: &Pod,
    ) -> Result<BTreeMap<TokenRequestKey, std::result::Result<String, String>>> {
        let answers = self.claim(pod).into_iter().map(|(request_key, token)| async move {
            let late = |limit| unavailable(pod, format!("no answer within {limit:?}"));
            match token.wait(late).await {
                Ok(token) => Ok((request_key, Ok(token.as_ref().to_owned()))),
                // An error of the pod: its owner can fix it.
                Err(ClusterError::Refused { why, .. }) => Ok((request_key, Err(why))),
                Err(gone @ ClusterError::Gone { .. }) => Ok((request_key, Err(gone.to_string()))),
                Err(error) => Err(error),
            }
        });
        Ok(try_join_all(answers).await?.into_iter().collect())
    }

    pub(super) fn forget(&self, pod: &PodUid) {
        self.cached.lock().retain(|(uid, _), _| uid != pod);
    }

    fn claim(&self, pod: &Pod) -> Vec<(TokenRequestKey, CachedValue<Arc<str>>)> {
        let (uid, token_requests) = (pod.uid(), token::token_requests(pod));
        let mut cached = self.cached.lock();
        cached.retain(|(of, request_key), _| *of != uid || token_requests.contains(request_key));
        let claim = |request_key: TokenRequestKey| {
            let entry = cached.entry((uid.clone(), request_key.clone()));
            let entry = entry.or_insert_with(|| self.start_refresh(pod, request_key.clone()));
            (request_key, entry.token.clone())
        };
        token_requests.into_iter().map(claim).collect()
    }

    fn start_refresh(&self, pod: &Pod, request_key: TokenRequestKey) -> CachedToken {
        let token = CachedValue::new();
        let refresher = Arc::new(TokenRefresher {
            requester: TokenRequester::new(&self.client, pod, request_key),
            changes: self.changes.clone(),
            token: token.clone(),
        });
        let task = restarted(TaskName::TokenRefresh, self.panics.clone(), move || {
            Arc::clone(&refresher).run()
        });
        CachedToken { token, _refresher: AbortOnDropHandle::new(tokio::spawn(task)) }
    }
}

/// Refreshes one token of one pod.
struct TokenRefresher {
    requester: TokenRequester,
    changes: ChangeFeed,
    token: CachedValue<Arc<str>>,
}

impl TokenRefresher {
    async fn run(self: Arc<Self>) {
        let (mut backoff, mut failures) = (JitteredBackoff::FIRST_ANSWER, 0);
        // Age is counted from the answer by a clock that only goes forward: the API server's may differ from ours.
        let mut expires = None;
        loop {
            let asked = Instant::now();
            match self.requester.request_token().await {
                Ok((token, lifetime)) => {
                    (backoff, failures) = (JitteredBackoff::SLOW, 0);
                    // A lifetime beyond what the clock can count is one without end.
                    expires = asked.checked_add(lifetime);
                    if self.token.set(token) {
                        self.changes.publish(&ObjectChange::Token(self.requester.uid.clone()));
                    }
                    sleep(token::refresh_after(lifetime, random())).await;
                }
                Err(error) => {
                    tracing::debug!(pod = %self.requester.pod, uid = %self.requester.uid, %error, "service account token not renewed, will retry");
                    match expires.is_some_and(|expires| expires <= asked) {
                        true => self.token.expire(error),
                        false => self.token.set_failed(error),
                    }
                    failures += 1;
                    sleep(backoff.after(failures)).await;
                }
            }
        }
    }
}

fn unavailable(pod: &Pod, why: String) -> ClusterError {
    let object = format!(
        "serviceaccount {}/{}",
        pod.full_name().namespace,
        token::service_account_name(pod)
    );
    ClusterError::Unavailable { call: "token", object, why }
}
