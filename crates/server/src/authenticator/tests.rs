//! Certificates against the file of authorities.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};

use super::*;

fn issuer(name: &str, from: i32, to: i32) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn client(issuer: &CertifiedIssuer<'static, KeyPair>) -> [CertificateDer<'static>; 1] {
    let mut params = CertificateParams::default();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "api");
    let signed = params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap();
    [signed.der().clone()]
}

fn at(year: &str) -> UnixTime {
    let time: Timestamp = format!("{year}-06-01T00:00:00Z").parse().unwrap();
    UnixTime::since_unix_epoch(Duration::from_secs(time.as_second().unsigned_abs()))
}

#[test]
fn an_authority_counts_only_while_it_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.crt");
    let (old, new) = (issuer("old", 2000, 2030), issuer("new", 2028, 2040));
    fs::write(&file, old.pem() + &new.pem()).unwrap();
    let (of_old, of_new) = (client(&old), client(&new));
    let rows = [("2027", true, false), ("2029", true, true), ("2031", false, true)];
    let authorities = ClientCaFile::new(&file);
    for (year, is_old, is_new) in rows.into_iter().chain([("2041", false, false)]) {
        let is_known = |chain| authorities.user(chain, at(year)).is_some();
        assert_eq!((is_known(&of_old), is_known(&of_new)), (is_old, is_new), "{year}");
    }
}

#[test]
fn a_file_that_is_missing_or_broken_is_read_when_it_changes_and_now_and_then() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.crt");
    let issuer = issuer("a", 2000, 2040);
    let (chain, now) = (client(&issuer), at("2027"));
    let authorities = ClientCaFile::new(&file);
    let later = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs() + 10));
    assert!(authorities.user(&chain, now).is_none());
    let again = Some(timestamp(later));
    assert_eq!(authorities.state.lock().read_again, again, "the missing file was noticed");
    fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert!(authorities.user(&chain, now).is_none());
    let seen = authorities.state.lock().seen;
    assert!(authorities.user(&chain, now).is_none());
    let state = authorities.state.lock();
    assert_eq!((state.read_again, state.seen), (again, seen));
    drop(state);
    fs::write(&file, issuer.pem()).unwrap();
    assert_eq!(authorities.user(&chain, now).unwrap().name, "api");
    fs::remove_file(&file).unwrap();
    assert!(authorities.user(&chain, later).is_some(), "what was read stays in use");
}
