//! Certificates of clients and servers, in PEM and in DER.

use oarsman_cluster::credentials::certificate;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "certificates", max_len: 4096, run, seeds };

fn run(bytes: &[u8]) {
    drop(certificate::read(bytes));
    let read = certificate::read_der(bytes);
    if let Ok(subject) = certificate::client_subject(bytes) {
        assert!(!subject.common_name.is_empty(), "a client without a name");
        // A time may be out of range for us, but the names of one certificate are the same for both readers.
        if let Ok(read) = read {
            assert_eq!(read.subject.common_name, subject.common_name, "one certificate, two names");
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut params = CertificateParams::new(vec!["node-1".to_owned(), "10.0.0.1".to_owned()])
        .unwrap_or_default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, "system:node:node-1");
    let key = KeyPair::generate();
    let signed = key.and_then(|key| params.self_signed(&key));
    signed.map_or_else(|_| Vec::new(), |it| vec![it.der().to_vec(), it.pem().into_bytes()])
}
