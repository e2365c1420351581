//! Kubeconfigs, files and requests; TLS over loopback is beside.

pub(super) mod authority;
mod crashes;
mod over_tls;
mod short_lived;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jiff::Timestamp;
use oarsman_core::certificates::{CertificatePurpose, CertificateTemplate, SubjectAltNames};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension};

use super::certificate_store::CertificateStore;
use super::client_service::ClientService;
use super::key::Key;
use super::kubeconfig::ApiAccess;
use super::*;
use authority::Authority;

fn kubeconfig(directory: &Path, cluster: &str, user: &str) -> PathBuf {
    let file = directory.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{ name: c, cluster: {{ server: 'https://127.0.0.1:1', {cluster} }} }}]\n\
         users: [{{ name: u, user: {{ {user} }} }}]\n\
         contexts: [{{ name: x, context: {{ cluster: c, user: u }} }}]\n"
    );
    fs::write(&file, text).unwrap();
    file
}

#[tokio::test]
async fn paths_are_relative_to_the_kubeconfig_and_its_only_context_is_used() {
    let authority = Authority::new();
    let place = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.client("a", 100);
    fs::write(place.path().join("ca.crt"), authority.text()).unwrap();
    fs::write(place.path().join("own.crt"), certificate).unwrap();
    fs::write(place.path().join("own.key"), key).unwrap();
    let user = "client-certificate: own.crt, client-key: own.key";
    let file = kubeconfig(place.path(), "certificate-authority: ca.crt", user);
    let access = ApiAccess::read(&file).await.unwrap();
    let want = ["own.crt", "own.key"].map(|name| place.path().join(name));
    assert_eq!(access.files(), want);
    assert_eq!(access.config.root_cert_file, Some(place.path().join("ca.crt")));
    assert_eq!(access.certificate().unwrap().subject, CertificateTemplate::client("a").subject);
    ClientService::default().set_identity(&access).unwrap();
}

#[tokio::test]
async fn an_error_in_a_kubeconfig_names_the_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    let missing = ApiAccess::read(&path.join("none")).await.unwrap_err().to_string();
    assert!(missing.contains(&path.join("none").display().to_string()), "{missing}");
    let rows = [
        ("certificate-authority: ca.crt", "", "ca.crt"),
        (
            "proxy-url: 'http://127.0.0.1:3128'",
            "",
            "proxy-url http://127.0.0.1:3128 is not supported",
        ),
    ];
    for (cluster, user, want) in rows {
        let file = kubeconfig(path, cluster, user);
        let said = ApiAccess::read(&file).await.unwrap_err().to_string();
        assert!(said.contains(want) && said.contains(&file.display().to_string()), "{said}");
    }
    let file =
        kubeconfig(path, "insecure-skip-tls-verify: true", "client-certificate: x, client-key: y");
    let access = ApiAccess::read(&file).await.unwrap();
    let said = ClientService::default().set_identity(&access).unwrap_err().to_string();
    assert!(said.contains("kubeconfig") && said.contains('x'), "{said}");
}

#[tokio::test]
async fn what_a_kubeconfig_holds_is_in_no_error() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("bootstrap");
    let token = "07401b.f395accd246ae52d";
    let begin = "apiVersion: v1\nkind: Config\nusers:\n- name: u\n";
    let rows = [
        format!("{begin}  user:\n    token: {token}\n   other: x\n"),
        format!("{begin}  user: {token}\n"),
        format!("{begin}  user: {{ token: [{token}] }}\n"),
        format!("{begin}  user: {{ token: \"{token}\n"),
        format!("{begin}  user: {{ tokenFile: {{ {token}: x }} }}\n"),
    ];
    for text in rows {
        fs::write(&file, &text).unwrap();
        let said = ApiAccess::read(&file).await.unwrap_err();
        let said = format!("{said} {said:?}");
        assert!(said.contains("bootstrap") && !said.contains(token), "{text}: {said}");
    }
}

#[tokio::test]
async fn a_damaged_certificate_of_our_own_is_requested_anew() {
    let authority = Authority::new();
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    fs::write(path.join("ca.crt"), authority.text()).unwrap();
    let cluster = "certificate-authority: ca.crt";
    let bootstrap = path.join("bootstrap");
    fs::rename(kubeconfig(path, cluster, "token: abc"), &bootstrap).unwrap();
    let (certificate, key) = authority.client("a", 100);
    let (_, other) = authority.client("a", 100);
    let user = "client-certificate: own.pem, client-key: own.pem";
    let config = CredentialsConfig {
        kubeconfig: kubeconfig(path, cluster, user),
        bootstrap: Some(bootstrap),
        cert_dir: path.join("pki"),
        node: "a".to_owned(),
        rotate: true,
    };
    let whole = format!("{certificate}{key}");
    let rows = [
        (whole.clone(), true),
        (whole[..certificate.len() / 2].to_owned(), false),
        (certificate.clone(), false),
        (format!("{certificate}{other}"), false),
    ];
    for (text, is_usable) in rows {
        fs::write(path.join("own.pem"), &text).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(oarsman_clock::SystemClock::start());
        let connection = connect(config.clone(), clock).await.unwrap();
        assert_eq!(connection.manager.has_identity(), is_usable, "{text}");
    }
}

#[tokio::test]
async fn the_kubeconfig_of_a_node_leads_to_the_server_of_the_first_one() {
    let authority = Authority::new();
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("ca.crt"), authority.text()).unwrap();
    let bootstrap = kubeconfig(place.path(), "certificate-authority: ca.crt", "token: abc");
    let target = place.path().join("below/node.conf");
    let identity = place.path().join("pki/kubelet-client-current.pem");
    ApiAccess::write_kubeconfig(&bootstrap, &target, &identity).unwrap();
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    let access = ApiAccess::read(&target).await.unwrap();
    assert_eq!(access.files(), [identity.clone(), identity]);
    assert_eq!(access.config.cluster_url.to_string(), "https://127.0.0.1:1/");
    assert!(access.config.auth_info.token.is_none());
    let text = fs::read_to_string(target).unwrap();
    for name in ["default-cluster", "default-auth", "default-context"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn a_signing_request_has_the_nodes_subject_and_a_stable_name() {
    let key = Key::generate().unwrap();
    let names =
        SubjectAltNames { dns: ["a".to_owned()].into(), ips: ["10.0.0.1".parse().unwrap()].into() };
    let template = CertificateTemplate {
        purpose: CertificatePurpose::Serving,
        names,
        ..CertificateTemplate::client("a")
    };
    let request = key.request(&template).unwrap();
    let again = Key::read(&key.text()).unwrap().request(&template).unwrap();
    assert_eq!(request.name, again.name);
    assert!(
        request.name.starts_with("node-csr-") && request.name.len() == 9 + 43,
        "{}",
        request.name
    );
    let other = key.request(&CertificateTemplate::client("b")).unwrap();
    assert_ne!(request.name, other.name);
    let block =
        x509_parser::pem::Pem::iter_from_buffer(request.text.as_bytes()).next().unwrap().unwrap();
    assert_eq!(block.label, "CERTIFICATE REQUEST");
    let (_, read) = X509CertificationRequest::from_der(&block.contents).unwrap();
    let subject = read.certification_request_info.subject.to_string();
    assert_eq!(subject, "O=system:nodes, CN=system:node:a");
    let mut extensions = read.requested_extensions().unwrap();
    let Some(ParsedExtension::SubjectAlternativeName(found)) = extensions.next() else {
        panic!("no names")
    };
    let want = [GeneralName::DNSName("a"), GeneralName::IPAddress(&[10, 0, 0, 1])];
    assert_eq!(found.general_names, want);
}

#[test]
fn the_newest_certificate_counts_and_only_we_may_read_it() {
    let authority = Authority::new();
    let place = tempfile::tempdir().unwrap();
    let store = CertificateStore::new(&place.path().join("pki"), CertificatePurpose::Client);
    for (node, second) in ["a", "b", "c", "d", "e"].into_iter().zip(1_000_000_000..) {
        let (certificate, key) = authority.client(node, 100);
        let key = Key::read(&key).unwrap();
        let at = Timestamp::from_second(second).unwrap();
        let current = store.write(certificate.as_bytes(), &key, at).unwrap();
        let text = fs::read(&current).unwrap();
        assert_eq!(
            certificate::read(&text).unwrap().subject,
            CertificateTemplate::client(node).subject
        );
        assert_eq!(fs::metadata(&current).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_link(&current).unwrap().parent(), current.parent());
    }
    let directory = fs::metadata(place.path().join("pki")).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    let names: Vec<_> = fs::read_dir(place.path().join("pki")).unwrap().collect();
    assert_eq!(names.len(), 4, "the last three and the link: {names:?}");
}

#[test]
fn the_key_of_a_request_is_kept_until_it_is_answered() {
    let place = tempfile::tempdir().unwrap();
    let store = CertificateStore::new(place.path(), CertificatePurpose::Client);
    let first = store.pending_key().unwrap().text();
    assert_eq!(store.pending_key().unwrap().text(), first);
    let file = place.path().join("kubelet-client.key.tmp");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    for damaged in [&b"half a key"[..], b"\xff\xfe no text"] {
        fs::write(&file, damaged).unwrap();
        assert_ne!(store.pending_key().unwrap().text(), first);
    }
    store.remove_pending_key().unwrap();
    store.remove_pending_key().unwrap();
    assert!(!file.exists());
}
