//! Keys, the requests and the certificates that are made with them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use oarsman_core::certificates::{CertificateSubject, CertificateTemplate, SubjectAltNames};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, PublicKeyData,
    date_time_ymd,
};
use ring::digest::{Context, SHA512_256};

/// A key of the kind that nodes use: ECDSA on P-256.
#[derive(Debug)]
pub(super) struct Key(KeyPair);

/// A request to be signed.
#[derive(Debug)]
pub(super) struct SigningRequest {
    /// The same for the same key and subject, so that a repeated request has the same name.
    pub(super) name: String,
    pub(super) text: String,
}

impl Key {
    pub(super) fn generate() -> Result<Self, rcgen::Error> {
        KeyPair::generate().map(Self)
    }

    pub(super) fn read(text: &str) -> Result<Self, rcgen::Error> {
        KeyPair::from_pem(text).map(Self)
    }

    pub(super) fn text(&self) -> String {
        self.0.serialize_pem()
    }

    /// Asks for a certificate.
    pub(super) fn request(
        &self,
        template: &CertificateTemplate,
    ) -> Result<SigningRequest, rcgen::Error> {
        let params = params(&template.subject, &template.names)?;
        let text = params.serialize_request(&self.0)?.pem()?;
        Ok(SigningRequest { name: self.name(template), text })
    }

    fn name(&self, template: &CertificateTemplate) -> String {
        let mut digest = Context::new(&SHA512_256);
        let mut part = |bytes: &[u8]| {
            digest.update(URL_SAFE_NO_PAD.encode(bytes).as_bytes());
            digest.update(b"|");
        };
        part(&self.0.subject_public_key_info());
        part(template.subject.common_name.as_bytes());
        template.subject.organizations.iter().for_each(|group| part(group.as_bytes()));
        template.names.dns.iter().for_each(|name| part(name.as_bytes()));
        template.names.ips.iter().for_each(|ip| part(ip.to_string().as_bytes()));
        template.purpose.usages().iter().for_each(|usage| part(usage.as_bytes()));
        format!("node-csr-{}", URL_SAFE_NO_PAD.encode(digest.finish()))
    }

    /// A self-signed certificate, valid for a year.
    pub(super) fn self_signed(&self, host: &str, now: Timestamp) -> Result<String, rcgen::Error> {
        let names = match host.parse() {
            Ok(ip) => SubjectAltNames { ips: [ip].into(), ..SubjectAltNames::default() },
            Err(_) => {
                SubjectAltNames { dns: [host.to_owned()].into(), ..SubjectAltNames::default() }
            }
        };
        let common_name = format!("{host}@{}", now.as_second());
        let mut params =
            params(&CertificateSubject { common_name, organizations: Vec::new() }, &names)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // From yesterday, for those whose clocks are behind.
        let (first, last) = (day(now, -1), day(now, 365));
        params.not_before = date_time_ymd(first.0, first.1, first.2);
        params.not_after = date_time_ymd(last.0, last.1, last.2);
        Ok(params.self_signed(&self.0)?.pem())
    }
}

fn params(
    subject: &CertificateSubject,
    names: &SubjectAltNames,
) -> Result<CertificateParams, rcgen::Error> {
    let ips = names.ips.iter().map(ToString::to_string);
    let all: Vec<String> = names.dns.iter().cloned().chain(ips).collect();
    let mut params = CertificateParams::new(all)?;
    params.distinguished_name = DistinguishedName::new();
    for group in &subject.organizations {
        params.distinguished_name.push(DnType::OrganizationName, group.as_str());
    }
    params.distinguished_name.push(DnType::CommonName, subject.common_name.as_str());
    Ok(params)
}

/// The year, month and day that lie so many days away.
fn day(now: Timestamp, days: i64) -> (i32, u8, u8) {
    let day = now.to_zoned(TimeZone::UTC).date().saturating_add(days.days());
    let number = |part: i8| u8::try_from(part).unwrap_or(1);
    (day.year().into(), number(day.month()), number(day.day()))
}
