//! A certificate authority for one cluster, and the certificates and keys it issues.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};

use super::SERVICE_ADDRESS;

/// The DNS names of the API server in pods.
const NAMES: [&str; 4] =
    ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"];

/// Signs certificates of servers and clients; the controller manager signs with the same key.
pub(super) struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: PathBuf,
}

/// A certificate and its key, as PEM.
pub(super) struct CertificatePem {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The paths of a certificate and its key.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// The certificate, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
}

impl CertificateAuthority {
    /// Makes an authority, with its certificate and key in that directory.
    pub(super) fn create(directory: &Path) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "rig");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let authority = Self { issuer, directory: directory.to_owned() };
        let pair = CertificatePem {
            certificate: authority.pem(),
            key: authority.issuer.key().serialize_pem(),
        };
        authority.write("ca", &pair)?;
        Ok(authority)
    }

    /// The authority's certificate.
    pub(super) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The paths of the authority's certificate and key.
    pub(super) fn files(&self) -> CertificateFiles {
        files(&self.directory, "ca")
    }

    /// A client's certificate: the common name is the user, the organisation its group.
    pub(super) fn client(&self, user: &str, group: &str) -> Result<CertificatePem> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, group);
        self.issue(user, params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// The same near its expiry, after nine tenths of its lifetime.
    pub(super) fn expiring_client(
        &self,
        user: &str,
        group: &str,
        rest: Duration,
    ) -> Result<CertificatePem> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, group);
        let now = Duration::from_secs(Timestamp::now().as_second().unsigned_abs());
        params.not_before = date_time_ymd(1970, 1, 1) + now - rest * 9;
        params.not_after = date_time_ymd(1970, 1, 1) + now + rest;
        self.issue(user, params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// The certificate of the API server, with all its names and addresses.
    pub(super) fn server(&self, address: Ipv4Addr) -> Result<CertificatePem> {
        let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
        let addresses = [address, SERVICE_ADDRESS, Ipv4Addr::LOCALHOST];
        params.subject_alt_names.extend(addresses.map(|it| SanType::IpAddress(it.into())));
        self.issue("kube-apiserver", params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn issue(
        &self,
        name: &str,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<CertificatePem> {
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(CertificatePem { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// Writes a certificate and its key to files.
    pub(super) fn write(&self, name: &str, pair: &CertificatePem) -> Result<CertificateFiles> {
        let files = files(&self.directory, name);
        fs::write(&files.certificate, &pair.certificate)?;
        fs::write(&files.key, &pair.key)?;
        Ok(files)
    }
}

fn files(directory: &Path, name: &str) -> CertificateFiles {
    let of = |kind: &str| directory.join(format!("{name}.{kind}"));
    CertificateFiles { certificate: of("crt"), key: of("key") }
}

/// Makes the key that signs service account tokens: the private half, and the public one.
pub(super) fn token_key(directory: &Path) -> Result<(PathBuf, PathBuf)> {
    let key = KeyPair::generate()?;
    let (private, public) = (directory.join("tokens.key"), directory.join("tokens.pub"));
    fs::write(&private, key.serialize_pem())?;
    fs::write(&public, key.public_key_pem())?;
    Ok((private, public))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_and_keys_are_written_to_their_files() {
        let directory = tempfile::tempdir().unwrap();
        let authority = CertificateAuthority::create(directory.path()).unwrap();
        let pair = authority.server(Ipv4Addr::new(10, 78, 1, 1)).unwrap();
        let files = authority.write("server", &pair).unwrap();
        assert_eq!(fs::read_to_string(files.certificate).unwrap(), pair.certificate);
        assert_eq!(fs::read_to_string(files.key).unwrap(), pair.key);
        assert_eq!(fs::read_to_string(authority.files().certificate).unwrap(), authority.pem());
        let (private, public) = token_key(directory.path()).unwrap();
        assert!(fs::read_to_string(private).unwrap().contains("PRIVATE KEY"));
        assert!(fs::read_to_string(public).unwrap().contains("PUBLIC KEY"));
    }
}
