//! Credentials for the pull of an image: the pod's, the node's, and those that programs know.

use std::sync::PoisonError;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::image::keyring::Keyring;
use oarsman_core::image::providers::{Answer, Provider, Question};
use oarsman_core::image::pull_secrets::pull_secrets;
use oarsman_cri_types::v1::AuthConfig;

use super::room::Room;

impl Room {
    /// Everything that may open an image, what the pod brings along first; nothing is tried twice.
    pub(super) async fn keys(&self, pod: &Pod, image: &str) -> Vec<AuthConfig> {
        let (of_pod, _) = pull_secrets(pod, &self.known_objects());
        let mut keys = of_pod.for_image(image);
        keys.extend(self.of_node().await.for_image(image));
        for provider in self.node.config.providers.iter().filter(|one| one.knows(image)) {
            keys.extend(self.of_provider(provider, image).await.for_image(image));
        }
        let mut different: Vec<AuthConfig> = Vec::new();
        for key in keys {
            if !different.contains(&key) {
                different.push(key);
            }
        }
        different
    }

    /// Tells of Secrets that the pod names for its pulls and that are not to be had.
    pub(super) fn tell_of_pull_secrets(&self, pod: &Pod) {
        let (_, events) = pull_secrets(pod, &self.known_objects());
        self.node.recorder.record(pod, events);
    }

    /// What the node's file holds. One that cannot be read opens nothing, and keeps nobody from what is open.
    async fn of_node(&self) -> Keyring {
        let text = match self.node.seams.credential_plugins.node_credentials().await {
            Ok(text) => text.unwrap_or_else(|| "{}".to_owned()),
            Err(error) => {
                tracing::warn!(%error, "the node's credentials for registries cannot be read");
                return Keyring::default();
            }
        };
        Keyring::parse(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, "the node's credentials for registries cannot be used");
            Keyring::default()
        })
    }

    /// What a program knows, or has answered of late. One that fails knows nothing, and keeps nobody from what is open.
    async fn of_provider(&self, provider: &Provider, image: &str) -> Keyring {
        let cache = || self.node.credentials.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache().find(provider, image, self.now()) {
            return known.clone();
        }
        let question = Question::new(provider, image);
        let answer = match self.node.seams.credential_plugins.exec(provider, &question.text).await {
            Ok(bytes) => Answer::parse(provider, &bytes),
            Err(error) => {
                tracing::warn!(%error, "a program that knows credentials did not tell them");
                return Keyring::default();
            }
        };
        match answer {
            Ok(answer) => {
                cache().keep(provider, image, &answer, self.now());
                answer.keyring
            }
            Err(error) => {
                let name = provider.name.as_str();
                tracing::warn!(name, %error, "a program's credentials cannot be used");
                Keyring::default()
            }
        }
    }
}
