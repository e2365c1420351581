//! Certificates of pods in projected volumes: which ones a pod wants, what the answer to a request means, and when the next one is made.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1beta1::PodCertificateRequestStatus;
use k8s_openapi::api::core::v1::{Pod, PodCertificateProjection};

use crate::pem;
use crate::pod::PodExt;

/// The gate of certificates of pods.
pub const POD_CERTIFICATE_GATE: &str = "PodCertificateRequest";
/// A certificate is not asked for again sooner, whatever the signer says.
const SOONEST: Duration = Duration::from_secs(60);
/// A certificate that was to be replaced so long ago is overdue.
const OVERDUE_AFTER: Duration = Duration::from_secs(10 * 60);

/// The place of a certificate in a pod: each source has a key and a certificate of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateSource {
    /// The volume.
    pub volume: String,
    /// The place among the sources of the volume.
    pub index: usize,
}

/// A key with its certificates, as files hold them.
#[derive(Clone, PartialEq, Eq)]
pub struct PodCertificate {
    /// The key in PKCS#8, as PEM.
    pub key: Arc<str>,
    /// The certificate and those between it and the root, as PEM.
    pub chain: Arc<str>,
}

/// Without the key.
impl fmt::Debug for PodCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PodCertificate({} bytes)", self.chain.len())
    }
}

/// Kinds of keys that can be made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodKeyType {
    /// ECDSA on P-256.
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// Ed25519.
    Ed25519,
}

impl PodKeyType {
    /// The kind of that name, or what to do about it.
    ///
    /// # Errors
    /// For kinds that cannot be made here.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "ECDSAP256" => Ok(Self::EcdsaP256),
            "ECDSAP384" => Ok(Self::EcdsaP384),
            "ED25519" => Ok(Self::Ed25519),
            other => Err(format!(
                "keyType {other:?} cannot be made on this node: use ECDSAP256, ECDSAP384 or ED25519"
            )),
        }
    }
}

/// The certificates that a pod has in volumes that its containers mount.
pub fn certificate_sources(pod: &Pod) -> BTreeMap<CertificateSource, &PodCertificateProjection> {
    let mounted = pod.mounted_volumes();
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let mut found = BTreeMap::new();
    for volume in volumes.iter().filter(|volume| mounted.contains(&volume.name)) {
        let sources =
            volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        for (index, source) in sources.enumerate() {
            let key = CertificateSource { volume: volume.name.clone(), index };
            found.extend(source.pod_certificate.as_ref().map(|source| (key, source)));
        }
    }
    found
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The signer has not decided.
    Pending,
    /// There is a certificate.
    Issued(IssuedCertificate),
    /// There will be none: the same request would end in the same way.
    Refused(Refusal, String),
}

/// How a request ended without a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The signer may not sign it.
    Denied,
    /// The signer, or this node, could not do it.
    Failed,
}

/// What has become of a certificate that a pod wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateState {
    /// The signer has not decided yet.
    #[default]
    NotYetIssued,
    /// The pod has one; when the next one is asked for, and until when it counts.
    Issued {
        /// When the signer wants it replaced.
        begin_refresh_at: Option<Timestamp>,
        /// Until when it counts.
        not_after: Option<Timestamp>,
    },
    /// There will be no other.
    Refused(Refusal),
}

impl CertificateState {
    /// As metrics call it.
    pub fn label(self, now: Timestamp) -> &'static str {
        match self {
            Self::NotYetIssued => "not_yet_issued",
            Self::Refused(Refusal::Denied) => "denied",
            Self::Refused(Refusal::Failed) => "failed",
            Self::Issued { not_after, .. } if not_after.is_some_and(|end| now > end) => "expired",
            Self::Issued { begin_refresh_at, .. } => {
                let late = |at: Timestamp| until(now, at) > OVERDUE_AFTER;
                match begin_refresh_at.is_some_and(late) {
                    true => "overdue_for_refresh",
                    false => "fresh",
                }
            }
        }
    }
}

/// A certificate that was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// As PEM, without what is between the blocks.
    pub chain: String,
    /// When the next one is asked for.
    pub begin_refresh_at: Option<Timestamp>,
    /// Until when it counts.
    pub not_after: Option<Timestamp>,
}

/// Reads the status of a request.
pub fn outcome(status: Option<&PodCertificateRequestStatus>) -> RequestOutcome {
    let Some(status) = status else { return RequestOutcome::Pending };
    let conditions = status.conditions.iter().flatten().filter(|one| one.status == "True");
    for condition in conditions {
        let (refusal, verb) = match condition.type_.as_str() {
            "Denied" => (Refusal::Denied, "denied"),
            "Failed" => (Refusal::Failed, "failed"),
            _ => continue,
        };
        let (reason, message) = (&condition.reason, &condition.message);
        let why = format!("the signer {verb} the request: {reason}: {message}");
        return RequestOutcome::Refused(refusal, why);
    }
    let Some(chain) = status.certificate_chain.as_deref().filter(|chain| !chain.is_empty()) else {
        return RequestOutcome::Pending;
    };
    let unusable = |why: String| RequestOutcome::Refused(Refusal::Failed, why);
    match pem::certificates(chain) {
        Ok(certificates) if !certificates.is_empty() => RequestOutcome::Issued(IssuedCertificate {
            chain: pem::text_of_certificates(&certificates),
            begin_refresh_at: status.begin_refresh_at.as_ref().map(|at| at.0),
            not_after: status.not_after.as_ref().map(|at| at.0),
        }),
        Ok(_) => unusable("certificateChain holds no certificate".to_owned()),
        Err(why) => unusable(format!("certificateChain: {why}")),
    }
}

impl IssuedCertificate {
    /// The state of a pod that has it.
    pub fn state(&self) -> CertificateState {
        let (begin_refresh_at, not_after) = (self.begin_refresh_at, self.not_after);
        CertificateState::Issued { begin_refresh_at, not_after }
    }

    /// How long after `now` the next one is asked for.
    pub fn refresh_after(&self, now: Timestamp) -> Duration {
        // A signer that sets no time has certificates replaced when they end.
        let at = self.begin_refresh_at.or(self.not_after);
        at.map_or(Duration::MAX, |at| until(at, now)).max(SOONEST)
    }

    /// How long after `now` it counts.
    pub fn expires_after(&self, now: Timestamp) -> Duration {
        self.not_after.map_or(Duration::MAX, |at| until(at, now))
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
