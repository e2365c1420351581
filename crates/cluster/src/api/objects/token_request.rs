//! The request for a token of a service account, bound to a pod.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::token::{self, TokenRequestKey};
use tokio::time::timeout;

use super::super::error::failed;
use super::CALL;
use crate::{ClusterError, Result};

/// Requests tokens of one kind for one pod.
pub(super) struct TokenRequester {
    client: Client,
    pub(super) pod: FullName,
    pub(super) uid: PodUid,
    account: String,
    /// The account must have this UID, if one is given.
    account_uid: Option<String>,
    request_key: TokenRequestKey,
}

impl TokenRequester {
    pub(super) fn new(client: &Client, pod: &Pod, request_key: TokenRequestKey) -> Self {
        Self {
            client: client.clone(),
            pod: pod.full_name(),
            uid: pod.uid(),
            account: token::service_account_name(pod).to_owned(),
            account_uid: None,
            request_key,
        }
    }

    /// The same, of the account with this UID only.
    pub(super) fn of_account(self, uid: &str) -> Self {
        Self { account_uid: Some(uid.to_owned()), ..self }
    }

    /// A new token, and how long it is good for.
    pub(super) async fn request_token(&self) -> Result<(Arc<str>, Duration)> {
        let accounts: Api<ServiceAccount> =
            Api::namespaced(self.client.clone(), &self.pod.namespace);
        let (asked, params) = (self.token_request(), PostParams::default());
        let answer = accounts.create_token_request(&self.account, &params, &asked);
        let object = self.account_object();
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
        let seconds = said.unwrap_or(self.request_key.seconds);
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

    fn account_object(&self) -> String {
        let (name, namespace) = (self.account.clone(), self.pod.namespace.clone());
        ClusterError::service_account(&FullName { name, namespace })
    }

    fn token_request(&self) -> TokenRequest {
        let audience = Some(&self.request_key.audience).filter(|audience| !audience.is_empty());
        let bound = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(self.pod.name.clone()),
            uid: Some(self.uid.to_string()),
        };
        let spec = TokenRequestSpec {
            audiences: audience.map(|audience| vec![audience.clone()]),
            bound_object_ref: Some(bound),
            expiration_seconds: Some(self.request_key.seconds),
        };
        let metadata = ObjectMeta { uid: self.account_uid.clone(), ..ObjectMeta::default() };
        TokenRequest { metadata, spec: Some(spec), status: None }
    }
}
