//! Docker configurations, the configuration of credential providers, their answers, and records of pulls.

use std::time::Duration;

use oarsman_core::image::keyring::Keyring;
use oarsman_core::image::providers::{
    CredentialProvider, CredentialProviderRequest, CredentialProviderResponse, providers,
};
use oarsman_core::image::pull_records::{ImagePulledRecord, intent_text, parse_intent};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget = FuzzTarget { name: "credentials", max_len: 4096, run, seeds };

const API_VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";
const IMAGES: [&str; 4] =
    ["busybox", "library/busybox:1", "eu.reg.io:5000/team/app@sha256:00", "[::1]:5000/a"];

fn run(bytes: &[u8]) {
    if let Ok(keyring) =
        str::from_utf8(bytes).map_err(drop).and_then(|it| Keyring::parse(it).map_err(drop))
    {
        look_up(&keyring);
    }
    if let Ok(answer) = CredentialProviderResponse::parse(&provider(), bytes, None) {
        look_up(&answer.keyring);
    }
    if let Ok(record) = ImagePulledRecord::parse(bytes) {
        let again = ImagePulledRecord::parse(record.text().as_bytes());
        assert_eq!(again, Ok(record), "a record is not what was written");
    }
    if let Ok(image) = parse_intent(bytes) {
        assert_eq!(parse_intent(intent_text(&image).as_bytes()), Ok(image));
    }
    let Ok(documents) = oarsman_manifest::documents(bytes) else { return };
    for provider in providers(&documents, true).unwrap_or_default() {
        for image in IMAGES {
            provider.matches_image(image);
            let asked = CredentialProviderRequest::new(&provider, image, None).text;
            assert!(
                asked.len() < 4 * bytes.len() + 1024,
                "a request longer than its configuration"
            );
        }
    }
}

fn look_up(keyring: &Keyring) {
    IMAGES.into_iter().for_each(|image| drop(keyring.for_image(image)));
}

fn provider() -> CredentialProvider {
    CredentialProvider {
        name: "p".to_owned(),
        match_images: vec!["*.reg.io".to_owned()],
        default_cache: Duration::from_secs(60),
        api_version: API_VERSION.to_owned(),
        args: Vec::new(),
        env: Vec::new(),
        token_attributes: None,
    }
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2024-10-21T12:26:40Z","imageRef":"sha256:0","credentialMapping":{"docker.io/a/b":{"kubernetesSecrets":[{"uid":"u","namespace":"n","name":"s","credentialHash":"h"}]}}}"#,
        r#"{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1alpha1","image":"docker.io/a/b:1"}"#,
        r#"{"auths": {"https://index.docker.io/v1/": {"auth": "YW5uOnB3"}, "*.reg.io:5000/team": {"username": "u", "password": "p"}}}"#,
        r#"{"eu.reg.io:5000": {"identitytoken": "t", "registrytoken": "r", "username": "", "auth": ""}}"#,
        r#"{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Registry", "cacheDuration": "1h2m", "auth": {"*.reg.io": {"username": "u", "password": "p"}}}"#,
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: p\n  matchImages: ['*.reg.io:5000/team', docker.io]\n  defaultCacheDuration: 10m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  args: [--fast]\n  env: [{name: REGION, value: eu}]\n",
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: p\n  matchImages: [reg.io]\n  defaultCacheDuration: 10m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  tokenAttributes:\n    serviceAccountTokenAudience: reg.io\n    cacheType: Token\n    requireServiceAccount: true\n    requiredServiceAccountAnnotationKeys: [reg.io/role]\n",
    ])
}
