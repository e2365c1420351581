//! Certificates: what a node asks to be signed, what it makes of the answer, and when it asks again.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};
use k8s_openapi::api::core::v1::NodeAddress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::time::wall_between;

#[cfg(test)]
mod tests;

/// The group that all nodes are in.
pub const NODES: &str = "system:nodes";
/// A certificate is renewed after this part of its life at the earliest.
const EARLIEST: f64 = 0.7;
/// Nodes that got theirs at once do not all come back at once.
const SPREAD: f64 = 0.2;

/// The subject of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateSubject {
    /// The user, where it is a client's.
    pub common_name: String,
    /// The organizations, which authorization takes for the groups of the user.
    pub organizations: Vec<String>,
}

/// The subject alternative names of a serving certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectAltNames {
    /// DNS names.
    pub dns: BTreeSet<String>,
    /// IP addresses.
    pub ips: BTreeSet<IpAddr>,
}

/// What is known of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Whom it is about.
    pub subject: CertificateSubject,
    /// How they may be called.
    pub names: SubjectAltNames,
    /// From when it counts.
    pub not_before: Timestamp,
    /// Until when it counts.
    pub not_after: Timestamp,
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificatePurpose {
    /// Authenticates the node to the API server.
    Client,
    /// Authenticates the node's server to its clients.
    Serving,
}

impl CertificatePurpose {
    /// The signer that the CertificateSigningRequest names.
    pub fn signer(self) -> &'static str {
        match self {
            Self::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Self::Serving => "kubernetes.io/kubelet-serving",
        }
    }

    /// What it may be used for, with a key that cannot encrypt other keys.
    pub fn usages(self) -> [&'static str; 2] {
        match self {
            Self::Client => ["digital signature", "client auth"],
            Self::Serving => ["digital signature", "server auth"],
        }
    }

    /// How its files are called.
    pub fn file_prefix(self) -> &'static str {
        match self {
            Self::Client => "kubelet-client",
            Self::Serving => "kubelet-server",
        }
    }

    /// The file of the one that was written at a time.
    pub fn file(self, written: Timestamp) -> String {
        format!("{}-{}.pem", self.file_prefix(), written.strftime("%Y-%m-%d-%H-%M-%S"))
    }

    /// The link to the one that counts.
    pub fn current_file(self) -> String {
        format!("{}-current.pem", self.file_prefix())
    }
}

/// The certificate that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct CertificateTemplate {
    pub purpose: CertificatePurpose,
    /// The user that the certificate stands for.
    pub subject: CertificateSubject,
    pub names: SubjectAltNames,
}

impl CertificateTemplate {
    /// The client certificate with which a node authenticates to the API server.
    pub fn client(node: &str) -> Self {
        Self {
            purpose: CertificatePurpose::Client,
            subject: of_node(node),
            names: SubjectAltNames::default(),
        }
    }

    /// The serving certificate of a node; none while the node has no address, because signers refuse a request without one.
    pub fn serving(node: &str, addresses: &[NodeAddress]) -> Option<Self> {
        let mut names = SubjectAltNames::default();
        for NodeAddress { address, type_ } in addresses {
            match type_.as_str() {
                "InternalIP" | "ExternalIP" => names.ips.extend(address.parse::<IpAddr>()),
                "Hostname" | "InternalDNS" | "ExternalDNS" => {
                    // A host may be called by its address.
                    match address.parse() {
                        Ok(ip) => names.ips.insert(ip),
                        Err(_) => names.dns.insert(address.clone()),
                    };
                }
                _ => {}
            }
        }
        let purpose = CertificatePurpose::Serving;
        (!names.ips.is_empty()).then(|| Self { purpose, subject: of_node(node), names })
    }

    /// The request for it. Its text holds the rest.
    pub fn request(&self, name: &str, text: Vec<u8>) -> CertificateSigningRequest {
        CertificateSigningRequest {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: CertificateSigningRequestSpec {
                request: ByteString(text),
                signer_name: self.purpose.signer().to_owned(),
                usages: Some(self.purpose.usages().map(str::to_owned).to_vec()),
                ..CertificateSigningRequestSpec::default()
            },
            status: None,
        }
    }
}

/// A node as the API server knows it.
fn of_node(node: &str) -> CertificateSubject {
    CertificateSubject {
        common_name: format!("system:node:{node}"),
        organizations: vec![NODES.to_owned()],
    }
}

impl Certificate {
    /// When it is to be renewed, with a draw from 0 to 1.
    pub fn deadline(&self, chance: f64) -> Timestamp {
        let life = wall_between(self.not_before, self.not_after);
        let part = SPREAD.mul_add(chance.clamp(0.0, 1.0), EARLIEST);
        let wait = Duration::try_from_secs_f64(life.as_secs_f64() * part).unwrap_or(life);
        self.not_before.checked_add(wait).unwrap_or(self.not_after)
    }

    /// Whether it can be used, and whether it has to be renewed.
    pub fn state_at(
        &self,
        template: &CertificateTemplate,
        deadline: Timestamp,
        now: Timestamp,
    ) -> CertificateState {
        // A signer may add names.
        let has_names = template.names.dns.is_subset(&self.names.dns)
            && template.names.ips.is_subset(&self.names.ips);
        let is_other = self.subject != template.subject
            || (template.purpose == CertificatePurpose::Serving && !has_names);
        match () {
            () if now >= self.not_after => CertificateState::Expired,
            () if is_other => CertificateState::Other,
            () if now >= deadline => CertificateState::Due,
            () => CertificateState::Good,
        }
    }
}

/// Whether a certificate can be used, and whether it has to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateState {
    /// It will do until its deadline.
    Good,
    /// It will do, but it is time for the next.
    Due,
    /// Its subject or its names are not those of this node.
    Other,
    /// The certificate is past its end and must not be used.
    Expired,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CsrOutcome {
    /// Not approved or not signed yet.
    Waiting,
    /// Signed: the certificate's text.
    Signed(Vec<u8>),
    /// The request was denied; the reason.
    Denied(String),
    /// The signer could not sign it.
    Failed(String),
}

/// What came of a request.
pub fn csr_outcome(request: &CertificateSigningRequest) -> CsrOutcome {
    let Some(status) = &request.status else { return CsrOutcome::Waiting };
    let condition_of = |kind: &str| status.conditions.iter().flatten().find(|it| it.type_ == kind);
    let why = |condition: &CertificateSigningRequestCondition| {
        let parts = [condition.reason.as_deref(), condition.message.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().filter(|it| !it.is_empty()).collect();
        if parts.is_empty() { "no reason was given".to_owned() } else { parts.join(": ") }
    };
    if let Some(denied) = condition_of("Denied") {
        return CsrOutcome::Denied(why(denied));
    }
    if let Some(failed) = condition_of("Failed") {
        return CsrOutcome::Failed(why(failed));
    }
    let signed = status.certificate.as_ref().filter(|text| !text.0.is_empty());
    match (condition_of("Approved"), signed) {
        (Some(_), Some(text)) => CsrOutcome::Signed(text.0.clone()),
        _ => CsrOutcome::Waiting,
    }
}
