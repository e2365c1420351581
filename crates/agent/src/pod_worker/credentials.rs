//! Credentials for the pull of an image: the pod's, the node's, and those of credential provider plugins.

use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::ClusterError;
use oarsman_core::ids::FullName;
use oarsman_core::image::credentials::{ServiceAccountCoordinates, TrackedAuthConfig};
use oarsman_core::image::keyring::Keyring;
use oarsman_core::image::providers::{
    CredentialProvider, CredentialProviderRequest, CredentialProviderResponse, ProviderQuestion,
    ShownServiceAccount, TokenAttributes,
};
use oarsman_core::image::pull_secrets::pull_secrets;
use oarsman_core::pod::PodExt;

use super::context::PodContext;

impl PodContext {
    /// Every credential for an image, those of the pod first.
    pub(super) async fn credentials(&self, pod: &Pod, image: &str) -> Vec<TrackedAuthConfig> {
        let (of_pod, _) = pull_secrets(pod, &self.objects.known());
        let mut found = of_pod.for_image(image);
        found.extend(self.node_keyring().await.for_image(image));
        for provider in self.node.config.providers.iter().filter(|one| one.matches_image(image)) {
            found.extend(self.provider_keyring(pod, provider, image).await.for_image(image));
        }
        found
    }

    /// The same, none twice: a registry that refused one refuses it again.
    pub(super) async fn credentials_to_try(
        &self,
        pod: &Pod,
        image: &str,
    ) -> Vec<TrackedAuthConfig> {
        let mut different: Vec<TrackedAuthConfig> = Vec::new();
        for credential in self.credentials(pod, image).await {
            if different.iter().all(|one| one.auth != credential.auth) {
                different.push(credential);
            }
        }
        different
    }

    /// Records which Secrets that the pod names for its pulls are missing.
    pub(super) fn record_missing_pull_secrets(&self, pod: &Pod) {
        let (_, events) = pull_secrets(pod, &self.objects.known());
        self.node.recorder.record(pod, events);
    }

    /// What the node's file holds. One that cannot be read has no credentials, and public images need none.
    async fn node_keyring(&self) -> Keyring {
        let text = match self.node.seams.credential_plugins.node_credentials().await {
            Ok(text) => text.unwrap_or_else(|| "{}".to_owned()),
            Err(error) => {
                tracing::warn!(pod = %self.name, uid = %self.uid, %error, "node registry credentials not read, none are used");
                return Keyring::default();
            }
        };
        Keyring::parse(&text).unwrap_or_else(|error| {
            tracing::error!(pod = %self.name, uid = %self.uid, %error, "node registry credentials not decoded, none are used");
            Keyring::default()
        })
    }

    /// What a plugin answers, or has answered recently. A plugin that fails gives no credentials, and public images need none.
    async fn provider_keyring(
        &self,
        pod: &Pod,
        provider: &CredentialProvider,
        image: &str,
    ) -> Keyring {
        let shown = match &provider.token_attributes {
            None => Ok(Some(None)),
            Some(attributes) => self.shown_service_account(pod, attributes).await,
        };
        match shown {
            Ok(Some(account)) => {
                let account = account.as_ref();
                self.ask_provider(ProviderQuestion { provider, image, account }).await
            }
            // The account is how a pod opts in.
            Ok(None) => Keyring::default(),
            Err(error) => {
                let (uid, name) = (&self.uid, provider.name.as_str());
                tracing::warn!(pod = %self.name, %uid, provider = name, image, %error, "service account token for credential provider not got, its credentials are not used");
                Keyring::default()
            }
        }
    }

    /// What a plugin is shown of the pod's service account: perhaps nothing. None if it is not to be asked for this pod.
    async fn shown_service_account(
        &self,
        pod: &Pod,
        attributes: &TokenAttributes,
    ) -> Result<Option<Option<ShownServiceAccount>>, ClusterError> {
        let named = pod.spec().and_then(|spec| spec.service_account_name.clone());
        let Some(name) = named.filter(|name| !name.is_empty()) else {
            return Ok((!attributes.require_service_account).then_some(None));
        };
        let (cluster, namespace) = (&self.node.seams.cluster, pod.full_name().namespace);
        let name = FullName { name, namespace };
        let account = cluster.service_account(&name).await?.metadata;
        let annotations = account.annotations.unwrap_or_default();
        let Some(annotations) = attributes.shown_annotations(&annotations) else {
            return Ok(None);
        };
        let uid = account.uid.unwrap_or_default();
        let token = cluster.service_account_token(pod, &uid, &attributes.audience).await?;
        let FullName { name, namespace } = name;
        let coordinates = ServiceAccountCoordinates { uid, namespace, name };
        Ok(Some(Some(ShownServiceAccount { coordinates, annotations, token })))
    }

    async fn ask_provider(&self, question: ProviderQuestion<'_>) -> Keyring {
        let cache = &self.node.credentials;
        if let Some(known) = cache.lock().find(question, self.now()) {
            return known.clone();
        }
        let ProviderQuestion { provider, image, account } = question;
        let request = CredentialProviderRequest::new(provider, image, account);
        let (pod, uid, name) = (&self.name, &self.uid, provider.name.as_str());
        let (images, began) = (&self.node.metrics.images, self.now());
        let answer = self.node.seams.credential_plugins.exec(provider, &request.text).await;
        images.plugin_calls.observe_duration(provider.name.clone(), self.now().since(began));
        let answer = match answer {
            Ok(bytes) => CredentialProviderResponse::parse(provider, &bytes, account),
            Err(error) => {
                images.plugin_errors.increment(provider.name.clone());
                tracing::warn!(%pod, %uid, provider = name, image, %error, "credential provider failed, its credentials are not used");
                return Keyring::default();
            }
        };
        match answer {
            Ok(answer) => {
                cache.lock().keep(question, &answer, self.now());
                answer.keyring
            }
            Err(error) => {
                tracing::error!(%pod, %uid, provider = name, image, %error, "credential provider response not decoded, its credentials are not used");
                Keyring::default()
            }
        }
    }
}
