//! Service accounts and their tokens for credential providers. Pulls are rare: a token is requested when one is needed and the last one is
//! old, and nothing refreshes it meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::{Api, Client};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::token::{TokenRequestKey, refresh_after};
use oarsman_sync::Guarded;
use tokio::time::{Instant, timeout};

use super::super::error::failed;
use super::super::jitter::random;
use super::CALL;
use super::token_request::TokenRequester;
use crate::{ClusterError, Result};

/// Tokens by the pod that they are bound to, and the audience.
pub(super) struct ProviderTokens {
    client: Client,
    /// Never held over an await.
    issued: Guarded<BTreeMap<(PodUid, String), IssuedToken>>,
}

#[derive(Clone)]
struct IssuedToken {
    account_uid: String,
    token: Arc<str>,
    /// None is one that the clock cannot count to.
    refresh_at: Option<Instant>,
    expires_at: Option<Instant>,
}

impl ProviderTokens {
    pub(super) fn new(client: Client) -> Self {
        Self { client, issued: Guarded::default() }
    }

    /// The account as the API server has it now: who deletes an annotation or the account must not wait for a cache.
    pub(super) async fn service_account(&self, name: &FullName) -> Result<ServiceAccount> {
        let object = ClusterError::service_account(name);
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &name.namespace);
        match timeout(CALL, api.get(&name.name)).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(failed("get", &object, &error)),
            Err(_) => {
                let why = format!("no answer within {CALL:?}");
                Err(ClusterError::Unavailable { call: "get", object, why })
            }
        }
    }

    /// A token of the pod's account, if that has this UID. One that is due for a refresh is used while there is no newer one.
    pub(super) async fn token(&self, pod: &Pod, account: &str, audience: &str) -> Result<String> {
        let (key, asked) = ((pod.uid(), audience.to_owned()), Instant::now());
        let is_of_account = |issued: &IssuedToken| issued.account_uid == account;
        let known = self.issued.lock().get(&key).cloned().filter(is_of_account);
        let is_before = |limit: Option<Instant>| limit.is_none_or(|limit| asked < limit);
        if let Some(known) = known.as_ref().filter(|known| is_before(known.refresh_at)) {
            return Ok(known.token.as_ref().to_owned());
        }
        let request_key = TokenRequestKey::for_audience(audience);
        let requester = TokenRequester::new(&self.client, pod, request_key).of_account(account);
        match requester.request_token().await {
            Ok((token, lifetime)) => {
                let issued = IssuedToken {
                    account_uid: account.to_owned(),
                    token: Arc::clone(&token),
                    refresh_at: asked.checked_add(refresh_after(lifetime, random())),
                    expires_at: asked.checked_add(lifetime),
                };
                self.issued.lock().insert(key, issued);
                Ok(token.as_ref().to_owned())
            }
            Err(error) => match known.filter(|known| is_before(known.expires_at)) {
                Some(known) => Ok(known.token.as_ref().to_owned()),
                None => Err(error),
            },
        }
    }

    pub(super) fn forget(&self, pod: &PodUid) {
        self.issued.lock().retain(|(uid, _), _| uid != pod);
    }
}
