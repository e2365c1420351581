//! An authority that signs what a test needs.

use std::time::Duration;

use jiff::Timestamp;
use oarsman_core::certificates::CertificateTemplate;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};

pub(in super::super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(in super::super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub(in super::super) fn text(&self) -> String {
        self.issuer.pem()
    }

    /// A node's certificate that lasts so many seconds, and its key.
    pub(in super::super) fn client(&self, node: &str, seconds: u64) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name(node);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, seconds)
    }

    /// A server's certificate for loopback, and its key.
    pub(in super::super) fn server(&self) -> (String, String) {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params, 3600)
    }

    /// The serving certificate of a node at loopback for a key, of which one minute is left of a day.
    pub(in super::super) fn expiring_server(&self, node: &str, key: &str) -> String {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = distinguished_name(node);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let now = Duration::from_secs(Timestamp::now().as_second().unsigned_abs());
        params.not_before = date_time_ymd(1970, 1, 1) + now - Duration::from_secs(24 * 60 * 60);
        params.not_after = date_time_ymd(1970, 1, 1) + now + Duration::from_secs(60);
        params.signed_by(&KeyPair::from_pem(key).unwrap(), &self.issuer).unwrap().pem()
    }

    fn sign(&self, mut params: CertificateParams, seconds: u64) -> (String, String) {
        let now = Duration::from_secs(Timestamp::now().as_second().unsigned_abs());
        params.not_before = date_time_ymd(1970, 1, 1) + now.saturating_sub(Duration::from_secs(60));
        params.not_after = date_time_ymd(1970, 1, 1) + now + Duration::from_secs(seconds);
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        (signed.pem(), key.serialize_pem())
    }
}

fn distinguished_name(node: &str) -> DistinguishedName {
    let subject = CertificateTemplate::client(node).subject;
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, subject.organizations[0].as_str());
    name.push(DnType::CommonName, subject.common_name.as_str());
    name
}
