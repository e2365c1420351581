//! Tokens of service accounts: issued to pods, and replaced before they expire.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::references::ObjectChange;
use oarsman_core::token::{TokenRequestKey, refresh_after, service_account_name, token_requests};

use super::{ApiFailure, FakeCluster};

/// Tokens by pod, and until when each is used.
#[derive(Default)]
pub(super) struct IssuedTokens {
    given: u64,
    of_pods: BTreeMap<(PodUid, TokenRequestKey), (String, Duration)>,
}

impl FakeCluster {
    /// The tokens of a pod. Watchers are notified when one should be replaced.
    pub(super) fn tokens(&self, pod: &Pod) -> BTreeMap<TokenRequestKey, Result<String, String>> {
        let token = |request_key: TokenRequestKey| {
            let token = self.token(&pod.uid(), &request_key);
            (request_key, Ok(token))
        };
        token_requests(pod).into_iter().map(token).collect()
    }

    /// Creates or replaces a service account.
    pub fn put_service_account(&self, account: ServiceAccount) {
        let (name, namespace) = (account.metadata.name.clone(), account.metadata.namespace.clone());
        let name =
            FullName { name: name.unwrap_or_default(), namespace: namespace.unwrap_or_default() };
        self.state().accounts.insert(name, account);
    }

    pub(super) fn service_account(&self, name: &FullName) -> Result<ServiceAccount, ApiFailure> {
        self.check_available()?;
        self.state().accounts.get(name).cloned().ok_or(ApiFailure::Gone)
    }

    /// A token for a credential provider; none unless the pod's account has that UID.
    pub(super) fn provider_token(
        &self,
        pod: &Pod,
        account: &str,
        audience: &str,
    ) -> Result<String, ApiFailure> {
        let (name, namespace) = (service_account_name(pod).to_owned(), pod.full_name().namespace);
        let found = self.service_account(&FullName { name, namespace })?;
        match found.metadata.uid.as_deref() == Some(account) {
            true => Ok(self.token(&pod.uid(), &TokenRequestKey::for_audience(audience))),
            false => Err(ApiFailure::Gone),
        }
    }

    fn token(&self, uid: &PodUid, request_key: &TokenRequestKey) -> String {
        let mut state = self.state();
        let (now, key) = (state.clock.elapsed(), (uid.clone(), request_key.clone()));
        if let Some((token, until)) = state.tokens.of_pods.get(&key)
            && now < *until
        {
            return token.clone();
        }
        let lifetime = Duration::from_secs(request_key.seconds.unsigned_abs());
        let used = refresh_after(lifetime, 0);
        state.tokens.given += 1;
        let token = format!("token {}", state.tokens.given);
        state.tokens.of_pods.insert(key, (token.clone(), now + used));
        drop(state);
        let (cluster, change) = (self.clone(), ObjectChange::Token(uid.clone()));
        self.0.executor.spawn(async move {
            tokio::time::sleep(used).await;
            cluster.notify_watchers(change);
        });
        token
    }
}
