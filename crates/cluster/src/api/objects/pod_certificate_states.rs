//! The states of certificates of pods, for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use oarsman_core::ids::PodUid;
use oarsman_core::pod_certificate::{CertificateSource, CertificateState};
use oarsman_sync::Guarded;

type States = BTreeMap<(PodUid, CertificateSource), (String, CertificateState)>;

/// What became of each certificate that a pod has in a volume; clones share it. Those of a pod go with it.
#[derive(Clone, Debug, Default)]
pub struct PodCertificateStates(Arc<Guarded<States>>);

impl PodCertificateStates {
    /// A certificate of this signer is wanted.
    pub(super) fn begin(&self, pod: &PodUid, source: &CertificateSource, signer: &str) {
        let state = (signer.to_owned(), CertificateState::default());
        self.0.lock().insert((pod.clone(), source.clone()), state);
    }

    /// What has become of it. A task that was about to end may tell of a pod that is gone.
    pub(super) fn set(&self, pod: &PodUid, source: &CertificateSource, state: CertificateState) {
        if let Some((_, known)) = self.0.lock().get_mut(&(pod.clone(), source.clone())) {
            *known = state;
        }
    }

    pub(super) fn forget(&self, pod: &PodUid) {
        self.0.lock().retain(|(uid, _), _| uid != pod);
    }

    /// How many there are, by signer and state.
    pub fn counts(&self, now: Timestamp) -> BTreeMap<(String, &'static str), u64> {
        let mut counts = BTreeMap::new();
        for (signer, state) in self.0.lock().values() {
            *counts.entry((signer.clone(), state.label(now))).or_default() += 1;
        }
        counts
    }
}
