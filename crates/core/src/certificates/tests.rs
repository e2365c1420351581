//! What is asked for, when, and what the answers mean.

use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn certificate(template: &CertificateTemplate, from: i64, until: i64) -> Certificate {
    Certificate {
        subject: template.subject.clone(),
        names: template.names.clone(),
        not_before: at(from),
        not_after: at(until),
    }
}

fn addresses(of: &[(&str, &str)]) -> Vec<NodeAddress> {
    let each = |(kind, address): &(&str, &str)| NodeAddress {
        type_: (*kind).to_owned(),
        address: (*address).to_owned(),
    };
    of.iter().map(each).collect()
}

#[test]
fn a_certificate_is_renewed_between_seven_and_nine_tenths_of_its_life() {
    let own = certificate(&CertificateTemplate::client("a"), 1000, 2000);
    let rows = [(0.0, 1700), (0.5, 1800), (1.0, 1900), (-3.0, 1700), (7.0, 1900)];
    for (chance, want) in rows {
        assert_eq!(own.deadline(chance).as_second(), want, "{chance}");
    }
    // One that never counted is renewed at once.
    assert_eq!(certificate(&CertificateTemplate::client("a"), 2000, 1000).deadline(0.5), at(2000));
}

#[test]
fn the_state_of_a_certificate_depends_on_its_subject_and_its_age() {
    let template = CertificateTemplate::client("a");
    let rows = [
        ("a", 1500, CertificateState::Good),
        ("a", 1799, CertificateState::Good),
        ("a", 1800, CertificateState::Due),
        ("a", 1999, CertificateState::Due),
        ("a", 2000, CertificateState::Expired),
        ("b", 1500, CertificateState::Other),
        ("b", 2000, CertificateState::Expired),
    ];
    for (node, now, want) in rows {
        let own = certificate(&CertificateTemplate::client(node), 1000, 2000);
        assert_eq!(own.state_at(&template, at(1800), at(now)), want, "{node} {now}");
    }
}

#[test]
fn a_serving_certificate_is_asked_for_again_when_addresses_change() {
    let of = |ip| {
        CertificateTemplate::serving("a", &addresses(&[("InternalIP", ip), ("Hostname", "a")]))
    };
    let (before, after) = (of("10.0.0.1").unwrap(), of("10.0.0.2").unwrap());
    let own = certificate(&before, 1000, 2000);
    assert_eq!(own.state_at(&before, at(1800), at(1500)), CertificateState::Good);
    assert_eq!(own.state_at(&after, at(1800), at(1500)), CertificateState::Other);
    let mut more = own;
    more.names.dns.insert("added.by.the.signer".to_owned());
    more.names.ips.insert("10.0.0.3".parse().unwrap());
    assert_eq!(more.state_at(&before, at(1800), at(1500)), CertificateState::Good);
    assert_eq!(more.state_at(&after, at(1800), at(1500)), CertificateState::Other);
}

#[test]
fn names_of_a_server_are_the_addresses_of_its_node() {
    let all = addresses(&[
        ("InternalIP", "10.0.0.1"),
        ("InternalIP", "fd00::1"),
        ("Hostname", "a"),
        ("ExternalDNS", "a.example.com"),
        ("Hostname", "10.0.0.9"),
        ("Else", "x"),
    ]);
    let template = CertificateTemplate::serving("a", &all).unwrap();
    let ips = ["10.0.0.1", "fd00::1", "10.0.0.9"].map(|ip| ip.parse().unwrap());
    assert_eq!(template.names.ips, BTreeSet::from(ips));
    assert_eq!(template.names.dns, ["a", "a.example.com"].map(str::to_owned).into());
    assert_eq!(CertificateTemplate::serving("a", &addresses(&[("Hostname", "a")])), None);
}

#[test]
fn requests_name_the_signer_and_the_usages() {
    let rows = [
        (
            CertificateTemplate::client("a"),
            "kubernetes.io/kube-apiserver-client-kubelet",
            "client auth",
        ),
        (
            CertificateTemplate::serving("a", &addresses(&[("InternalIP", "10.0.0.1")])).unwrap(),
            "kubernetes.io/kubelet-serving",
            "server auth",
        ),
    ];
    for (template, signer, usage) in rows {
        assert_eq!(template.subject.common_name, "system:node:a");
        assert_eq!(template.subject.organizations, ["system:nodes"]);
        let request = template.request("csr-1", b"text".to_vec());
        let want = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": { "name": "csr-1" },
            "spec": { "request": "dGV4dA==", "signerName": signer, "usages": ["digital signature", usage] },
        });
        assert_eq!(serde_json::to_value(&request).unwrap(), want);
    }
}

#[test]
fn files_carry_the_time_they_were_written_at() {
    let when = "2026-11-16T07:05:09Z".parse().unwrap();
    assert_eq!(CertificatePurpose::Client.file(when), "kubelet-client-2026-11-16-07-05-09.pem");
    assert_eq!(CertificatePurpose::Client.current_file(), "kubelet-client-current.pem");
    assert_eq!(CertificatePurpose::Serving.current_file(), "kubelet-server-current.pem");
}

#[test]
fn an_answer_is_taken_once_it_is_both_approved_and_signed() {
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "reason": "Why", "message": "so" });
    let rows = [
        (json!({}), CsrOutcome::Waiting),
        (json!({ "certificate": "eA==" }), CsrOutcome::Waiting),
        (json!({ "conditions": [condition("Approved")] }), CsrOutcome::Waiting),
        (
            json!({ "conditions": [condition("Approved")], "certificate": "eA==" }),
            CsrOutcome::Signed(b"x".to_vec()),
        ),
        (
            json!({ "conditions": [condition("Denied"), condition("Approved")], "certificate": "eA==" }),
            CsrOutcome::Denied("Why: so".to_owned()),
        ),
        (
            json!({ "conditions": [{ "type": "Failed", "status": "True" }] }),
            CsrOutcome::Failed("no reason was given".to_owned()),
        ),
    ];
    for (status, want) in rows {
        let request = json!({ "metadata": {}, "spec": { "request": "", "signerName": "" }, "status": status });
        assert_eq!(csr_outcome(&serde_json::from_value(request).unwrap()), want, "{status}");
    }
}
