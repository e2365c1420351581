//! Reading certificates.

use std::net::IpAddr;

use jiff::Timestamp;
use oarsman_core::certificates::{Certificate, CertificateSubject, SubjectAltNames};
use x509_parser::asn1_rs::Tag;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

#[cfg(test)]
mod tests;

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

/// The subject of a client's certificate, which says who the client is: exactly one common name, which is not empty, and text
/// throughout.
///
/// Of several common names Go takes the last and other programs the first, so that a certificate with two would be one user here
/// and another one elsewhere. Text that is no UTF-8 makes the whole certificate unreadable for Go, too.
///
/// # Errors
/// Why it does not say who the client is.
pub fn client_subject(bytes: &[u8]) -> Result<CertificateSubject, String> {
    let (_, found) = parse_x509_certificate(bytes)
        .map_err(|error| format!("its certificate cannot be read: {error}"))?;
    let mut names = found.subject().iter_common_name();
    let (Some(name), None) = (names.next(), names.next()) else {
        return Err("its subject does not have exactly one common name".to_owned());
    };
    let text = |it: &AttributeTypeAndValue<'_>| {
        let text = it.as_str().map_err(|error| format!("its subject is not text: {error}"))?;
        match has_characters_of_its_type(it) {
            true => Ok(text.to_owned()),
            false => {
                Err("its subject has characters that its type of string does not have".to_owned())
            }
        }
    };
    let common_name = text(name)?;
    if common_name.is_empty() {
        return Err("its common name is empty".to_owned());
    }
    let organizations = found.subject().iter_organization().map(text).collect::<Result<_, _>>()?;
    Ok(CertificateSubject { common_name, organizations })
}

/// Some types of strings have few characters. Go reads no certificate that has others in one; x509-parser does not look.
fn has_characters_of_its_type(value: &AttributeTypeAndValue<'_>) -> bool {
    let bytes = value.as_slice();
    match value.attr_value().tag() {
        Tag::PrintableString => bytes.iter().all(|byte| is_printable(*byte)),
        Tag::Ia5String => bytes.is_ascii(),
        Tag::NumericString => bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b' '),
        _ => true,
    }
}

/// The standard has neither the star nor the ampersand; Go takes both, because there are certificates with them.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
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
