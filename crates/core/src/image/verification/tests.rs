//! Every policy with every state of the records and every kind of credential.

use std::collections::BTreeMap;

use jiff::Timestamp;
use oarsman_cri_types::v1::AuthConfig;

use super::*;
use crate::image::credentials::{SecretCoordinates, ServiceAccountCoordinates};
use crate::image::pull_records::CompletedPull;

const IMAGE: &str = "r.io/team/app:1";
const NAMES: [&str; 2] = ["r.io/team/app:1", "r.io/team/app@sha256:00"];

fn credential(source: CredentialSource, password: &str) -> TrackedAuthConfig {
    let auth = AuthConfig {
        username: "u".to_owned(),
        password: password.to_owned(),
        ..AuthConfig::default()
    };
    TrackedAuthConfig::new(auth, "", source)
}

fn secret(uid: &str, namespace: &str, password: &str) -> TrackedAuthConfig {
    let (uid, namespace, name) = (uid.to_owned(), namespace.to_owned(), "pull".to_owned());
    credential(CredentialSource::Secret(SecretCoordinates { uid, namespace, name }), password)
}

fn account(uid: &str) -> TrackedAuthConfig {
    let (uid, namespace, name) = (uid.to_owned(), "a".to_owned(), "default".to_owned());
    let account = ServiceAccountCoordinates { uid, namespace, name };
    credential(CredentialSource::ServiceAccount(account), "t")
}

/// The state of the records after a pull of that image with that credential.
fn pulled(image: &str, credentials: Option<ImagePullCredentials>) -> PullHistory {
    let (image, image_ref) = (image.to_owned(), "sha256:id".to_owned());
    let pull = CompletedPull { image, image_ref, credentials, at: Timestamp::UNIX_EPOCH };
    let record = ImagePulledRecord::after(None, &pull);
    PullHistory::Known { record, intents: PullIntents::default() }
}

fn with(credential: Option<&TrackedAuthConfig>) -> PullHistory {
    pulled(IMAGE, Some(ImagePullCredentials::of_pull(credential)))
}

fn intended(image: &str) -> PullHistory {
    let intents = PullIntents { images: [image.to_owned()].into(), ..PullIntents::default() };
    PullHistory::Known { record: None, intents }
}

fn check(
    policy: &CredentialVerificationPolicy,
    history: &PullHistory,
    presented: &[TrackedAuthConfig],
) -> MustPullResult {
    let names = NAMES.map(str::to_owned);
    let image = ImageOnNode { requested: IMAGE, names: &names };
    match policy.required_proof(image, history) {
        RequiredProof::Decided(result) => result,
        RequiredProof::OneOf(known) => {
            MustPullResult::by_credentials(&match_credentials(known, presented))
        }
    }
}

fn may_use(
    policy: &CredentialVerificationPolicy,
    history: &PullHistory,
    presented: &[TrackedAuthConfig],
) -> bool {
    check(policy, history, presented).may_use()
}

#[test]
fn metrics_tell_policy_record_pull_and_unreadable_records_apart() {
    use CredentialVerificationPolicy as P;
    let mine = secret("u1", "a", "p1");
    let rows = [
        (P::NeverVerify, PullHistory::Unreadable, "credentialPolicyAllowed"),
        (P::AlwaysVerify, PullHistory::Unreadable, "error"),
        (P::AlwaysVerify, intended(IMAGE), "mustAuthenticate"),
        (P::AlwaysVerify, with(None), "credentialRecordFound"),
        (P::AlwaysVerify, with(Some(&mine)), "credentialRecordFound"),
        (P::AlwaysVerify, with(Some(&secret("u2", "b", "p2"))), "mustAuthenticate"),
    ];
    for (policy, history, label) in rows {
        let result = check(&policy, &history, std::slice::from_ref(&mine));
        assert_eq!(result.label(), label, "{policy:?} {history:?}");
    }
}

#[test]
fn policy_records_and_credentials_decide_together() {
    use CredentialVerificationPolicy as P;
    let listed = |pattern: &str| P::NeverVerifyAllowlistedImages(vec![pattern.to_owned()]);
    let policies = [
        ("never", P::NeverVerify),
        ("preloaded", P::NeverVerifyPreloadedImages),
        ("listed", listed("r.io/team/*")),
        ("unlisted", listed("r.io/team")),
        ("always", P::AlwaysVerify),
    ];
    let (mine, sa) = (secret("u1", "a", "p1"), account("sa1"));
    let nothing = PullHistory::Known { record: None, intents: PullIntents::default() };
    let histories: BTreeMap<&str, PullHistory> = [
        ("0 none", nothing),
        ("1 intent", intended(IMAGE)),
        ("2 intent by digest", intended(NAMES[1])),
        ("3 intent of another", intended("r.io/other:1")),
        ("4 unreadable", PullHistory::Unreadable),
        ("5 unknown pull", pulled(IMAGE, None)),
        ("6 other repository", pulled("r.io/other:1", Some(ImagePullCredentials::of_pull(None)))),
        ("7 anonymous", with(None)),
        ("8 node", with(Some(&credential(CredentialSource::Node, "n")))),
        ("9 secret", with(Some(&mine))),
        ("A account", with(Some(&sa))),
    ]
    .into();
    let pods = [
        ("nothing", vec![]),
        ("the secret", vec![mine]),
        ("its new content", vec![secret("u1", "a", "p2")]),
        ("its copy", vec![secret("u2", "b", "p1")]),
        ("another secret", vec![secret("u2", "b", "p2")]),
        ("the account", vec![sa]),
        ("another account", vec![account("sa2")]),
        ("the node's", vec![credential(CredentialSource::Node, "p1")]),
    ];
    // Which pods may use the image: all, none, or these by their number above.
    let rows: [(&str, [&str; 11]); 5] = [
        ("never", ["all"; 11]),
        ("preloaded", ["all", "", "", "all", "", "", "", "all", "all", "123", "5"]),
        ("listed", ["all"; 11]),
        ("unlisted", ["", "", "", "", "", "", "", "all", "all", "123", "5"]),
        ("always", ["", "", "", "", "", "", "", "all", "all", "123", "5"]),
    ];
    for ((name, policy), (row, expected)) in policies.iter().zip(rows) {
        assert_eq!(*name, row);
        for ((state, history), expected) in histories.iter().zip(expected) {
            for (number, (pod, presented)) in pods.iter().enumerate() {
                let allowed = expected == "all" || expected.contains(&number.to_string());
                let told = format!("{name}, {state}, a pod with {pod}");
                assert_eq!(may_use(policy, history, presented), allowed, "{told}");
            }
        }
    }
}

#[test]
fn a_secret_that_is_recognised_by_a_part_is_recorded_whole() {
    let known = ImagePullCredentials::of_pull(Some(&secret("u1", "a", "p1")));
    let rotated = secret("u1", "a", "p2");
    let expected = CredentialMatch::Changed(ImagePullCredentials::of_pull(Some(&rotated)));
    assert_eq!(match_credentials(&known, &[rotated]), expected);
    let copy = secret("u2", "b", "p1");
    let expected = CredentialMatch::Changed(ImagePullCredentials::of_pull(Some(&copy)));
    assert_eq!(match_credentials(&known, &[copy]), expected);
    assert_eq!(match_credentials(&known, &[secret("u1", "a", "p1")]), CredentialMatch::Same);
}

#[test]
fn a_record_does_not_grow_without_end_by_copies_of_one_secret() {
    let mut known = ImagePullCredentials::default();
    for number in 0..MOST_SECRETS_BY_HASH {
        let one = ImagePullCredentials::of_pull(Some(&secret(&number.to_string(), "a", "p1")));
        known.kubernetes_secrets.extend(one.kubernetes_secrets);
    }
    assert_eq!(match_credentials(&known, &[secret("new", "b", "p1")]), CredentialMatch::Same);
}

#[test]
fn a_secret_without_uid_is_recognised_by_its_content_only() {
    let known = ImagePullCredentials::of_pull(Some(&secret("", "a", "p1")));
    assert_eq!(match_credentials(&known, &[secret("", "a", "p2")]), CredentialMatch::None);
    assert_ne!(match_credentials(&known, &[secret("", "a", "p1")]), CredentialMatch::None);
}

#[test]
fn the_allowlist_names_repositories_or_all_below_a_path() {
    let rows = [
        ("r.io/team/app", "r.io/team/app:1", true),
        ("r.io/team/app", "r.io/team/app@sha256:00", true),
        ("r.io/team/app", "r.io/team/app2:1", false),
        ("r.io/team/*", "r.io/team/app:1", true),
        ("r.io/team/*", "r.io/team/sub/app", true),
        ("r.io/team/*", "r.io/teams/app", false),
        ("docker.io/library/busybox", "busybox", true),
        ("docker.io/library/*", "busybox:1", true),
    ];
    for (pattern, image, trusted) in rows {
        let list = vec![pattern.to_owned()];
        let policy = CredentialVerificationPolicy::NeverVerifyAllowlistedImages(list);
        assert_eq!(policy.trusts(image), trusted, "{pattern} {image}");
    }
}
