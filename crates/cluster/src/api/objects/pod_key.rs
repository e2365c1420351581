//! Keys of pods, in the forms that requests and files hold them.

use oarsman_core::pem;
use oarsman_core::pod_certificate::PodKeyType;
use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_ED25519,
};

/// What PKCS#8 in its first version has before the 32 bytes of an Ed25519 key (RFC 8410, section 7).
const ED25519_V1: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// How long such a key is.
const ED25519_LENGTH: usize = 32;

/// A key for one certificate.
pub(super) struct PodKey {
    pair: KeyPair,
    kind: PodKeyType,
}

impl PodKey {
    /// A new key of the kind that the pod asks for.
    pub(super) fn generate(kind: &str) -> Result<Self, String> {
        let kind = PodKeyType::named(kind)?;
        let algorithm = match kind {
            PodKeyType::EcdsaP256 => &PKCS_ECDSA_P256_SHA256,
            PodKeyType::EcdsaP384 => &PKCS_ECDSA_P384_SHA384,
            PodKeyType::Ed25519 => &PKCS_ED25519,
        };
        let pair = KeyPair::generate_for(algorithm).map_err(|error| error.to_string())?;
        Ok(Self { pair, kind })
    }

    /// A signing request without content, by which the API server verifies that the key is ours; in DER.
    pub(super) fn request(&self) -> Result<Vec<u8>, String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&self.pair).map_err(|error| error.to_string())?;
        Ok(request.der().to_vec())
    }

    /// The private key in PKCS#8.
    pub(super) fn pem(&self) -> String {
        let der = self.pair.serialized_der();
        match self.kind {
            PodKeyType::EcdsaP256 | PodKeyType::EcdsaP384 => pem::block("PRIVATE KEY", der),
            PodKeyType::Ed25519 => pem::block("PRIVATE KEY", &first_version(der)),
        }
    }
}

/// The key is made in the second version of PKCS#8, which adds the public key and which OpenSSL does not read.
fn first_version(der: &[u8]) -> Vec<u8> {
    let key = der.get(ED25519_V1.len()..ED25519_V1.len() + ED25519_LENGTH);
    // Both versions have lengths and version numbers of one byte each before the key.
    key.map_or_else(|| der.to_vec(), |key| [&ED25519_V1[..], key].concat())
}

#[cfg(test)]
mod tests {
    use rcgen::PublicKeyData;
    use x509_parser::certification_request::X509CertificationRequest;
    use x509_parser::prelude::FromDer;

    use super::*;

    #[test]
    fn a_request_is_empty_and_signed_with_the_key_that_the_file_holds() {
        for kind in ["ECDSAP256", "ECDSAP384", "ED25519"] {
            let key = PodKey::generate(kind).unwrap();
            // As a program in the pod reads it.
            let read = KeyPair::from_pem(&key.pem()).unwrap();
            let request = key.request().unwrap();
            let (_, request) = X509CertificationRequest::from_der(&request).unwrap();
            let info = &request.certification_request_info;
            assert_eq!(info.subject_pki.raw, read.subject_public_key_info(), "{kind}");
            assert_eq!(info.subject.iter().count(), 0, "{kind}");
        }
        assert!(PodKey::generate("RSA4096").is_err());
    }
}
