//! Certificates after a kill at any of their writes, and with any bit flipped: the agent starts, with the old or the new one.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use oarsman_clock::SystemClock;
use oarsman_core::certificates::CertificatePurpose;
use oarsman_crash::{changes, each_flip, kill_at_every_change};
use tokio::runtime::Builder;

use super::super::certificate_store::CertificateStore;
use super::super::key::Key;
use super::super::{CredentialsConfig, ServingCertificateSource, certificate, connect, serving};
use super::authority::Authority;

const CHILD: &str = "credentials::tests::crashes::child_renews_the_certificate";
static AUTHORITY: OnceLock<String> = OnceLock::new();
const DAY: u64 = 24 * 60 * 60;

fn store(place: &Path) -> CertificateStore {
    CertificateStore::new(&place.join("pki"), CertificatePurpose::Client)
}

/// Writes a certificate of the node as the one that counts.
fn renew(place: &Path, second: i64, seconds: u64) {
    let (certificate, key) = Authority::new().client("a", seconds);
    let (key, at) = (Key::read(&key).unwrap(), Timestamp::from_second(second).unwrap());
    store(place).write(certificate.as_bytes(), &key, at).unwrap();
}

/// A kubeconfig as the agent writes it itself: it names the certificate that counts.
fn kubeconfig(place: &Path) {
    let current = store(place).current();
    let current = current.display();
    // With an authority of its own, the machine's are not read each time.
    let authority = AUTHORITY.get_or_init(|| STANDARD.encode(Authority::new().text()));
    let text = format!(
        "clusters: [{{ name: c, cluster: {{ server: 'https://127.0.0.1:1', certificate-authority-data: {authority} }} }}]\n\
         users: [{{ name: u, user: {{ client-certificate: {current}, client-key: {current} }} }}]\n\
         contexts: [{{ name: x, context: {{ cluster: c, user: u }} }}]\ncurrent-context: x\n"
    );
    fs::write(place.join("kubeconfig"), text).unwrap();
}

/// Starts as the agent does; a node that has joined long ago has no bootstrap kubeconfig any more.
fn start(place: &Path, moment: &str) {
    kubeconfig(place);
    for bootstrap in [None, Some(place.join("bootstrap-that-is-gone"))] {
        let config = CredentialsConfig {
            kubeconfig: place.join("kubeconfig"),
            bootstrap,
            cert_dir: place.join("pki"),
            node: "a".to_owned(),
            rotate: true,
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let started = runtime.block_on(connect(config, Arc::new(SystemClock::start())));
        assert!(started.is_ok(), "{moment}: {:?}", started.err());
    }
}

/// How long the certificate that counts lasts, in days.
fn days(place: &Path) -> i64 {
    let text = fs::read(store(place).current()).unwrap();
    let left =
        certificate::read(&text).unwrap().not_after.as_second() - Timestamp::now().as_second();
    (left + 3600) / 86_400
}

#[test]
#[ignore = "the child of the test below"]
fn child_renews_the_certificate() {
    renew(&oarsman_crash::directory(), 1_000_000_001, 20 * DAY);
}

#[test]
fn the_certificate_is_the_old_or_the_new_one_wherever_its_write_was_killed() {
    let prepare = |place: &Path| renew(place, 1_000_000_000, 10 * DAY);
    let kills = kill_at_every_change(CHILD, prepare, |place, moment| {
        assert!([10, 20].contains(&days(place)), "{moment}: {}", days(place));
        start(place, moment);
        each_flip(place, 991, |place, flip| start(place, &format!("{moment}, {flip}")));
        renew(place, 1_000_000_002, 30 * DAY);
        assert_eq!(days(place), 30, "{moment}");
    });
    assert!(kills > 10, "killed {kills} times");
}

#[test]
fn the_agent_starts_with_any_bit_of_its_certificates_flipped() {
    let place = tempfile::tempdir().unwrap();
    renew(place.path(), 1_000_000_000, 10 * DAY);
    let flips = each_flip(place.path(), 11, start);
    assert!(flips > 50, "{flips}");
    renew(place.path(), 1_000_000_001, 20 * DAY);
    each_flip(place.path(), 41, start);
}

#[test]
fn a_certificate_is_on_the_disk_before_the_link_leads_to_it() {
    let place = tempfile::tempdir().unwrap();
    renew(place.path(), 1_000_000_000, DAY);
    let changes = changes(CHILD, place.path());
    let at = |call: &str, file: &str| {
        let found = changes.iter().position(|it| it.call == call && it.arguments.contains(file));
        found.unwrap_or_else(|| panic!("no {call} of {file}: {changes:#?}"))
    };
    let (content, named) = (at("fsync", ".pem.new"), at("rename", ".pem.new"));
    let linked = at("rename", "kubelet-client-updated.pem");
    assert!(content < named && named < linked, "{changes:#?}");
    // Old certificates go last: one that comes back with a crash does no harm.
    let after = changes[linked + 1..].iter().map(|it| it.call.as_str());
    let lasting = after.take_while(|call| *call != "unlink").any(|call| call == "fsync");
    assert!(lasting, "the new link is not made to last: {changes:#?}");
}

#[test]
fn a_self_signed_certificate_with_any_bit_flipped_is_used_or_made_again() {
    let place = tempfile::tempdir().unwrap();
    let start = |place: &Path| {
        let origin = ServingCertificateSource::SelfSigned {
            cert_dir: place.to_owned(),
            host: "a".to_owned(),
        };
        serving(origin, Arc::new(SystemClock::start())).map(drop)
    };
    start(place.path()).unwrap();
    let flips = each_flip(place.path(), 7, |place, flip| {
        assert!(start(place).is_ok(), "{flip}");
        assert!(start(place).is_ok(), "{flip}, a second time");
    });
    assert!(flips > 50, "{flips}");
}
