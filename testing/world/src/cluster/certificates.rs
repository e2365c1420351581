//! Certificates of pods: issued at once by a signer that refuses none, and replaced before they expire.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::pod_certificate::{CertificateSource, PodCertificate, certificate_sources};
use oarsman_core::references::ObjectChange;

use super::FakeCluster;

/// For how long a certificate is used.
const USED: Duration = Duration::from_secs(12 * 60 * 60);

/// Certificates by pod and source, and until when each is used.
#[derive(Default)]
pub(super) struct IssuedCertificates {
    given: u64,
    of_pods: BTreeMap<(PodUid, CertificateSource), (PodCertificate, Duration)>,
}

impl FakeCluster {
    /// The certificates of a pod. Watchers are notified when one should be replaced.
    pub(super) fn pod_certificates(
        &self,
        pod: &Pod,
    ) -> BTreeMap<CertificateSource, Result<PodCertificate, String>> {
        let sources = certificate_sources(pod).into_keys();
        sources.map(|source| (source.clone(), Ok(self.issue(&pod.uid(), source)))).collect()
    }

    fn issue(&self, uid: &PodUid, source: CertificateSource) -> PodCertificate {
        let mut state = self.state();
        let (now, key) = (state.clock.elapsed(), (uid.clone(), source));
        if let Some((certificate, until)) = state.certificates.of_pods.get(&key)
            && now < *until
        {
            return certificate.clone();
        }
        state.certificates.given += 1;
        let number = state.certificates.given;
        let certificate = PodCertificate {
            key: format!("key {number}").into(),
            chain: format!("chain {number}").into(),
        };
        state.certificates.of_pods.insert(key, (certificate.clone(), now + USED));
        drop(state);
        let (cluster, change) = (self.clone(), ObjectChange::PodCertificate(uid.clone()));
        self.0.executor.spawn(async move {
            tokio::time::sleep(USED).await;
            cluster.notify_watchers(change);
        });
        certificate
    }
}
