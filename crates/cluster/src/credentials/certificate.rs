//! Reading certificates.

use std::net::IpAddr;

use jiff::Timestamp;
use oarsman_core::certificates::{Certificate, CertificateSubject, SubjectAltNames};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The first certificate in a text, which is its owner's.
///
/// # Errors
/// What is wrong with the text.
pub fn read(text: &[u8]) -> Result<Certificate, String> {
    for block in Pem::iter_from_buffer(text) {
        let block = block.map_err(|error| format!("it is no PEM: {error}"))?;
        if block.label == "CERTIFICATE" {
            return read_der(&block.contents);
        }
    }
    Err("there is no certificate in it".to_owned())
}

/// A certificate in its binary form.
///
/// # Errors
/// What is wrong with it.
pub fn read_der(bytes: &[u8]) -> Result<Certificate, String> {
    let (_, found) = parse_x509_certificate(bytes)
        .map_err(|error| format!("its certificate cannot be read: {error}"))?;
    let time = |second| Timestamp::from_second(second).map_err(|error| error.to_string());
    Ok(Certificate {
        subject: subject(found.subject()),
        names: names(&found),
        not_before: time(found.validity().not_before.timestamp())?,
        not_after: time(found.validity().not_after.timestamp())?,
    })
}

fn subject(name: &X509Name<'_>) -> CertificateSubject {
    let text = |it: &AttributeTypeAndValue<'_>| it.as_str().ok().map(str::to_owned);
    CertificateSubject {
        common_name: name.iter_common_name().find_map(text).unwrap_or_default(),
        organizations: name.iter_organization().filter_map(text).collect(),
    }
}

fn names(certificate: &X509Certificate<'_>) -> SubjectAltNames {
    let mut names = SubjectAltNames::default();
    let Ok(Some(found)) = certificate.subject_alternative_name() else { return names };
    for name in &found.value.general_names {
        match name {
            GeneralName::DNSName(name) => drop(names.dns.insert((*name).to_owned())),
            GeneralName::IPAddress(bytes) => names.ips.extend(address(bytes)),
            _ => {}
        }
    }
    names
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
