//! Files that a cluster gives out: tokens, trust anchors and certificates. If all containers run as one user, or the pod has an fsGroup,
//! only those may read them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ClusterTrustBundleProjection, PodCertificateProjection, ServiceAccountTokenProjection,
};

use super::{Payload, PayloadFile, VolumeContext, plain};
use crate::cri_spec::error::{ConfigError, PayloadError};
use crate::cri_spec::security;
use crate::pod_certificate::CertificateSource;
use crate::token::TokenRequestKey;
use crate::trust_bundle::trust_anchors;

/// For the one user or the one group that the pod names.
const PRIVATE: i32 = 0o600;

impl VolumeContext<'_> {
    /// A file with a token.
    pub(super) fn token(
        &self,
        wanted: &ServiceAccountTokenProjection,
        mode: Option<i32>,
    ) -> Result<Payload, ConfigError> {
        let found = self.lookup.tokens.get(&TokenRequestKey::from(wanted));
        let text = match found {
            Some(Ok(text)) => Some(text.as_str()),
            Some(Err(why)) => return Err(PayloadError::NoToken(why.clone()).into()),
            None if self.lookup.tokens_later => None,
            None => return Err(PayloadError::NoCluster("serviceAccountToken").into()),
        };
        self.issued_file(&wanted.path, text, mode).map(|file| Payload::from([file]))
    }

    /// A file with trust anchors.
    pub(super) fn trust_bundle(
        &self,
        wanted: &ClusterTrustBundleProjection,
        mode: Option<i32>,
    ) -> Result<Payload, ConfigError> {
        let text = match &self.lookup.trust_bundles {
            Some(Ok(bundles)) => {
                Some(trust_anchors(wanted, bundles).map_err(PayloadError::TrustBundle)?)
            }
            Some(Err(why)) => return Err(PayloadError::NoTrustBundles(why.clone()).into()),
            None if self.lookup.tokens_later => None,
            None => return Err(PayloadError::NoCluster("clusterTrustBundle").into()),
        };
        self.issued_file(&wanted.path, text.as_deref(), mode).map(|file| Payload::from([file]))
    }

    /// Files with a key, its certificates, or both.
    pub(super) fn certificate(
        &self,
        wanted: &PodCertificateProjection,
        source: &CertificateSource,
        mode: Option<i32>,
    ) -> Result<Payload, ConfigError> {
        let found = match self.lookup.pod_certificates.get(source) {
            Some(Ok(found)) => Some(found),
            Some(Err(why)) => return Err(PayloadError::NoCertificate(why.clone()).into()),
            None if self.lookup.tokens_later => None,
            None => return Err(PayloadError::NoCluster("podCertificate").into()),
        };
        let both = found.map(|found| format!("{}{}", found.key, found.chain));
        let files = [
            (&wanted.credential_bundle_path, both.as_deref()),
            (&wanted.key_path, found.map(|found| &*found.key)),
            (&wanted.certificate_chain_path, found.map(|found| &*found.chain)),
        ];
        let files = files.into_iter().filter_map(|(path, text)| {
            let path = path.as_deref().filter(|path| !path.is_empty())?;
            Some(self.issued_file(path, text, mode))
        });
        files.collect()
    }

    /// One file. Without a text it stays as it is, and none is made.
    fn issued_file(
        &self,
        path: &str,
        text: Option<&str>,
        mode: Option<i32>,
    ) -> Result<(String, PayloadFile), ConfigError> {
        let bytes = text.map_or_else(Arc::default, |text| text.as_bytes().into());
        let user = security::common_user(self.pod);
        let own = (user.is_some() || security::group(self.pod).is_some()).then_some(PRIVATE);
        let owner = user.and_then(|user| u32::try_from(user).ok());
        let (path, keep) = (plain(path), text.is_none());
        let file = PayloadFile { owner, keep, ..self.file(&path, bytes, own, mode)? };
        Ok((path, file))
    }
}
