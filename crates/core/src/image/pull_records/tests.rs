//! Files as the Go kubelet writes them, and what pulls make of them.

use super::*;

const GO_RECORD: &str = r#"{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2024-10-21T12:26:40Z","imageRef":"testimageref","credentialMapping":{"docker.io/testing/test":{"kubernetesSecrets":[{"uid":"testsecretuid","namespace":"default","name":"pull-secret","credentialHash":"testsecrethash"}]}}}
"#;

fn secret(uid: &str, name: &str, hash: &str) -> ImagePullCredentials {
    ImagePullCredentials {
        kubernetes_secrets: vec![ImagePullSecret {
            uid: uid.to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            credential_hash: hash.to_owned(),
        }],
        ..ImagePullCredentials::default()
    }
}

fn account(uid: &str) -> ImagePullCredentials {
    ImagePullCredentials {
        kubernetes_service_accounts: vec![ImagePullServiceAccount {
            uid: uid.to_owned(),
            namespace: "default".to_owned(),
            name: "sa".to_owned(),
        }],
        ..ImagePullCredentials::default()
    }
}

fn anyone() -> ImagePullCredentials {
    ImagePullCredentials { node_pods_accessible: true, ..ImagePullCredentials::default() }
}

fn pull(image: &str, credentials: Option<ImagePullCredentials>, second: i64) -> CompletedPull {
    CompletedPull {
        image: image.to_owned(),
        image_ref: "testimageref".to_owned(),
        credentials,
        at: Timestamp::from_millisecond(second * 1000 + 900).unwrap(),
    }
}

fn made(pulls: &[CompletedPull]) -> ImagePulledRecord {
    let mut record = None;
    for pull in pulls {
        record = ImagePulledRecord::after(record.as_ref(), pull).or(record);
    }
    record.unwrap()
}

#[test]
fn records_are_written_and_named_as_the_go_kubelet_does() {
    let made = made(&[pull(
        "testing/test:something",
        Some(secret("testsecretuid", "pull-secret", "testsecrethash")),
        1_729_513_600,
    )]);
    assert_eq!(made.text(), GO_RECORD);
    assert_eq!(ImagePulledRecord::parse(GO_RECORD.as_bytes()), Ok(made));
    // The names of files are those of the Go kubelet's own test data.
    assert_eq!(
        file_name("testimageref"),
        "sha256-b3c0cc4278800b03a308ceb2611161430df571ca733122f0a40ac8b9792a9064"
    );
    assert_eq!(
        file_name("docker.io/testing/test:something"),
        "sha256-f24acc752be18b93b0504c86312bbaf482c9efb0c45e925bbccb0a591cebd7af"
    );
    assert_eq!(
        intent_text("docker.io/testing/test:something"),
        "{\"kind\":\"ImagePullIntent\",\"apiVersion\":\"kubelet.config.k8s.io/v1beta1\",\"image\":\"docker.io/testing/test:something\"}\n"
    );
}

#[test]
fn both_versions_are_read_and_nothing_else() {
    let old = GO_RECORD.replace("v1beta1", "v1alpha1");
    assert_eq!(
        ImagePulledRecord::parse(old.as_bytes()),
        ImagePulledRecord::parse(GO_RECORD.as_bytes())
    );
    let intent = intent_text("a").replace("v1beta1", "v1alpha1");
    assert_eq!(parse_intent(intent.as_bytes()).as_deref(), Ok("a"));
    let wrong = [
        GO_RECORD.replace("v1beta1", "v2"),
        GO_RECORD.replace("ImagePulledRecord", "ImagePullIntent"),
        GO_RECORD.replace("kubernetesSecrets", "kubernetesSecretCoordinates"),
        GO_RECORD.replace("\"imageRef\":\"testimageref\",", ""),
        GO_RECORD[..100].to_owned(),
        String::new(),
    ];
    for text in wrong {
        assert!(ImagePulledRecord::parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(parse_intent(GO_RECORD.as_bytes()).is_err());
}

#[test]
fn pulls_are_merged_into_the_record_of_their_image() {
    let first = pull("r.io/a:1", Some(secret("u1", "s1", "h1")), 1);
    let rows: [(&str, Option<ImagePullCredentials>, bool); 7] = [
        ("nothing new is known", None, false),
        ("the same again", Some(secret("u1", "s1", "h1")), false),
        ("the Secret has changed", Some(secret("u1", "s1", "h2")), true),
        ("another Secret", Some(secret("u0", "s0", "h1")), true),
        ("a service account", Some(account("u")), true),
        ("anyone", Some(anyone()), true),
        ("an empty list", Some(ImagePullCredentials::default()), false),
    ];
    for (what, credentials, is_change) in rows {
        let before = made(std::slice::from_ref(&first));
        let next = pull("r.io/a:2", credentials, 5);
        assert_eq!(ImagePulledRecord::after(Some(&before), &next).is_some(), is_change, "{what}");
    }
    let pulls = [
        first,
        pull("r.io/a", Some(secret("u1", "s1", "h2")), 2),
        pull("r.io/a", Some(secret("u0", "s0", "h0")), 3),
        pull("r.io/a", Some(account("x")), 4),
    ];
    let credentials = made(&pulls).credential_mapping["r.io/a"].clone();
    let names: Vec<(&str, &str)> = credentials
        .kubernetes_secrets
        .iter()
        .map(|secret| (secret.name.as_str(), secret.credential_hash.as_str()))
        .collect();
    assert_eq!(names, [("s0", "h0"), ("s1", "h2")]);
    assert_eq!(credentials.kubernetes_service_accounts.len(), 1);
    let opened = ImagePulledRecord::after(Some(&made(&pulls)), &pull("r.io/a", Some(anyone()), 9));
    let opened = opened.unwrap();
    assert_eq!(opened.credential_mapping["r.io/a"], anyone());
    let again = pull("r.io/a", Some(secret("u1", "s1", "h1")), 10);
    assert_eq!(ImagePulledRecord::after(Some(&opened), &again), None, "it stays open");
}

#[test]
fn what_opens_one_repository_opens_no_other() {
    let pulls = [pull("r.io/a", Some(anyone()), 1), pull("r.io/b", Some(account("x")), 2)];
    let record = made(&pulls);
    assert_eq!(record.credential_mapping["r.io/a"], anyone());
    assert_eq!(record.credential_mapping["r.io/b"], account("x"));
}

#[test]
fn an_image_pulled_under_unknown_circumstances_is_recorded_without_credentials() {
    let record = made(&[pull("r.io/a", None, 1)]);
    assert!(record.credential_mapping.is_empty());
    assert!(!record.text().contains("credentialMapping"));
}

#[test]
fn a_record_of_the_second_of_the_list_is_not_older_than_it() {
    let record = made(&[pull("a", None, 7)]);
    let listed = |millis| Timestamp::from_millisecond(millis).unwrap();
    assert!(!record.is_older_than(listed(7_100)), "it may be younger than the list");
    assert!(!record.is_older_than(listed(7_950)));
    assert!(record.is_older_than(listed(8_000)));
}

#[test]
fn an_intent_covers_every_spelling_of_its_image() {
    let images = ["busybox".to_owned(), "r.io/a@sha256:00".to_owned()];
    let files = ["broken".to_owned()].map(|image| file_name(&image));
    let intents = PullIntents { images: images.into(), files: files.into() };
    let rows = [
        ("docker.io/library/busybox:latest", true),
        ("index.docker.io/busybox", true),
        ("busybox:1", false),
        ("r.io/a@sha256:00", true),
        ("r.io/a:1@sha256:00", true),
        ("r.io/a:1", false),
        ("broken", true),
    ];
    for (name, covered) in rows {
        assert_eq!(intents.cover(["other.io/x", name]), covered, "{name}");
    }
    assert!(!PullIntents::default().cover(["busybox"]));
}
