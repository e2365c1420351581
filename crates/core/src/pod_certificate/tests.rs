//! Sources of certificates, and answers to requests.

use serde_json::{Value, json};

use super::*;

#[test]
fn a_pod_has_a_certificate_for_each_source_in_a_volume_that_is_mounted() {
    let source =
        |signer: &str| json!({ "podCertificate": { "signerName": signer, "keyType": "ED25519" } });
    let token = json!({ "serviceAccountToken": { "path": "t" } });
    let volume =
        |name: &str, sources: Value| json!({ "name": name, "projected": { "sources": sources } });
    let volumes =
        json!([volume("a", json!([token, source("x/y")])), volume("b", json!([source("x/z")]))]);
    let mounts = json!([{ "name": "a", "mountPath": "/a" }]);
    let spec =
        json!({ "containers": [{ "name": "c", "volumeMounts": mounts }], "volumes": volumes });
    let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
    let found = certificate_sources(&pod);
    let found: Vec<_> = found
        .iter()
        .map(|(at, source)| (at.volume.as_str(), at.index, source.signer_name.as_str()))
        .collect();
    assert_eq!(found, [("a", 1, "x/y")]);
}

#[test]
fn the_status_of_a_request_says_what_became_of_it() {
    let condition = |kind: &str, status: &str| json!({ "conditions": [{ "type": kind, "status": status, "reason": "Why", "message": "because", "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let chain = pem::block("CERTIFICATE", b"leaf");
    let issued = |chain: &str| json!({ "certificateChain": chain, "beginRefreshAt": "2026-01-01T12:00:00Z", "notAfter": "2026-01-02T00:00:00Z" });
    let denied = |why: &str| RequestOutcome::Refused(Refusal::Denied, why.to_owned());
    let refused = |why: &str| RequestOutcome::Refused(Refusal::Failed, why.to_owned());
    let rows = [
        (json!({}), RequestOutcome::Pending),
        (condition("Issued", "True"), RequestOutcome::Pending),
        (condition("Denied", "False"), RequestOutcome::Pending),
        (condition("Denied", "True"), denied("the signer denied the request: Why: because")),
        (condition("Failed", "True"), refused("the signer failed the request: Why: because")),
        (issued("nothing"), refused("certificateChain holds no certificate")),
        (issued("-----BEGIN CERTIFICATE-----"), refused("certificateChain: block 1 is damaged")),
        (
            issued(&format!("noise\n{chain}")),
            RequestOutcome::Issued(IssuedCertificate {
                chain,
                begin_refresh_at: Some("2026-01-01T12:00:00Z".parse().unwrap()),
                not_after: Some("2026-01-02T00:00:00Z".parse().unwrap()),
            }),
        ),
    ];
    for (status, meant) in rows {
        let status: PodCertificateRequestStatus = serde_json::from_value(status).unwrap();
        assert_eq!(outcome(Some(&status)), meant);
    }
    assert_eq!(outcome(None), RequestOutcome::Pending);
}

#[test]
fn the_next_certificate_is_asked_for_when_the_signer_says() {
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    let now = time("2026-01-01T00:00:00Z");
    let of = |refresh: Option<&str>, end: Option<&str>| IssuedCertificate {
        chain: String::new(),
        begin_refresh_at: refresh.map(time),
        not_after: end.map(time),
    };
    let end = Some("2026-01-02T00:00:00Z");
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let rows = [
        (of(Some("2026-01-01T12:00:00Z"), end), hours(12), hours(24)),
        (of(None, end), hours(24), hours(24)),
        (of(None, None), Duration::MAX, Duration::MAX),
        // A signer whose clock is slow is not asked all the time.
        (of(Some("2025-01-01T00:00:00Z"), Some("2025-01-01T00:00:00Z")), SOONEST, Duration::ZERO),
    ];
    for (issued, refresh, expiry) in rows {
        assert_eq!((issued.refresh_after(now), issued.expires_after(now)), (refresh, expiry));
    }
}

#[test]
fn a_certificate_is_overdue_ten_minutes_after_its_refresh_was_due() {
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    let issued = CertificateState::Issued {
        begin_refresh_at: Some(time("2026-01-01T12:00:00Z")),
        not_after: Some(time("2026-01-02T00:00:00Z")),
    };
    let forever = CertificateState::Issued { begin_refresh_at: None, not_after: None };
    let rows = [
        (CertificateState::default(), "2026-01-01T00:00:00Z", "not_yet_issued"),
        (issued, "2026-01-01T00:00:00Z", "fresh"),
        (issued, "2026-01-01T12:10:00Z", "fresh"),
        (issued, "2026-01-01T12:10:01Z", "overdue_for_refresh"),
        (issued, "2026-01-02T00:00:01Z", "expired"),
        (forever, "2036-01-01T00:00:00Z", "fresh"),
        (CertificateState::Refused(Refusal::Denied), "2026-01-01T00:00:00Z", "denied"),
        (CertificateState::Refused(Refusal::Failed), "2026-01-01T00:00:00Z", "failed"),
    ];
    for (state, now, label) in rows {
        assert_eq!(state.label(time(now)), label, "{state:?} at {now}");
    }
}

#[test]
fn a_kind_of_key_that_cannot_be_made_says_which_can() {
    assert_eq!(PodKeyType::named("ECDSAP256"), Ok(PodKeyType::EcdsaP256));
    assert_eq!(PodKeyType::named("ECDSAP384"), Ok(PodKeyType::EcdsaP384));
    assert_eq!(PodKeyType::named("ED25519"), Ok(PodKeyType::Ed25519));
    for other in ["RSA3072", "RSA4096", "ECDSAP521", ""] {
        let error = PodKeyType::named(other).unwrap_err();
        assert!(error.contains("use ECDSAP256, ECDSAP384 or ED25519"), "{error}");
    }
}
