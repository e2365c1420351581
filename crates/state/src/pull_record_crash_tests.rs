//! Records of pulls after a kill at any of their writes, and with any bit flipped: an image that was pulled with credentials is never taken
//! for one that was not.

use std::path::Path;

use jiff::Timestamp;
use oarsman_core::image::pull_records::{
    CompletedPull, ImagePullCredentials, ImagePullSecret, PullIntents,
};
use oarsman_core::image::verification::{
    CredentialVerificationPolicy, ImageOnNode, PullHistory, RequiredProof,
};
use oarsman_crash::{Change, changes, each_flip, kill_at_every_change};
use tokio::runtime::{Builder, Runtime};

use crate::pull_records::{PullRecordFiles, PullRecords};

const IMAGE: &str = "r.io/private:1";
const IMAGE_REF: &str = "sha256:private";

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn pulled_with(secret: &str) -> CompletedPull {
    let secret = ImagePullSecret {
        uid: secret.to_owned(),
        namespace: "a".to_owned(),
        name: "pull".to_owned(),
        credential_hash: format!("hash-{secret}"),
    };
    let credentials = ImagePullCredentials {
        kubernetes_secrets: vec![secret],
        ..ImagePullCredentials::default()
    };
    CompletedPull {
        image: IMAGE.to_owned(),
        image_ref: IMAGE_REF.to_owned(),
        credentials: Some(credentials),
        at: Timestamp::from_second(1).unwrap(),
    }
}

/// The pull of a private image, as the agent records it; with the image on the node before its record.
fn pull(root: &Path, secret: &str) {
    let records = PullRecordFiles::open(root);
    runtime().block_on(async {
        records.write_intent(IMAGE).await.unwrap();
        records.record_pulled(&pulled_with(secret)).await.unwrap();
        records.remove_intent(IMAGE).await.unwrap();
    });
}

/// What the disk says of the image.
fn history(root: &Path) -> PullHistory {
    let records = PullRecordFiles::open(root);
    runtime().block_on(async {
        match (records.pulled(IMAGE_REF).await, records.intents().await) {
            (Ok(record), Ok(intents)) => PullHistory::Known { record, intents },
            _ => PullHistory::Unreadable,
        }
    })
}

/// Whether a pod without credentials may use the image, which is on the node.
fn is_open(history: &PullHistory) -> bool {
    let names = [IMAGE.to_owned()];
    let image = ImageOnNode { requested: IMAGE, names: &names };
    let policy = CredentialVerificationPolicy::NeverVerifyPreloadedImages;
    matches!(policy.required_proof(image, history), RequiredProof::Decided(it) if it.may_use())
}

#[test]
#[ignore = "the child of the tests below"]
fn child_records_a_pull() {
    pull(&oarsman_crash::directory(), "new");
}

/// Row C9 of docs/security.md.
#[test]
fn a_kill_at_any_write_of_a_pull_opens_the_image_to_nobody() {
    let child = "pull_record_crash_tests::child_records_a_pull";
    let mut seen = [false; 3];
    let begun = |root: &Path| {
        // The image comes after the intent is on the disk: until then there is none to open.
        let records = PullRecordFiles::open(root);
        runtime().block_on(records.write_intent(IMAGE)).unwrap();
    };
    let kills = kill_at_every_change(child, begun, |root, moment| {
        let found = history(root);
        assert!(!is_open(&found), "{moment}: {found:?}");
        match &found {
            PullHistory::Known { record: None, .. } => seen[0] = true,
            PullHistory::Known { intents, .. } if *intents != PullIntents::default() => {
                seen[1] = true;
            }
            _ => seen[2] = true,
        }
    });
    assert!(kills >= 10 && seen == [true; 3], "killed {kills} times, {seen:?}");
}

#[test]
fn a_kill_at_any_write_keeps_what_was_recorded_before() {
    let child = "pull_record_crash_tests::child_records_a_pull";
    let kills = kill_at_every_change(
        child,
        |root| pull(root, "old"),
        |root, moment| {
            let found = history(root);
            let PullHistory::Known { record: Some(record), .. } = &found else {
                panic!("{moment}: {found:?}");
            };
            let secrets = &record.credential_mapping["r.io/private"].kubernetes_secrets;
            assert!(secrets.iter().any(|secret| secret.uid == "old"), "{moment}: {secrets:?}");
        },
    );
    assert!(kills >= 10, "killed {kills} times");
}

/// Row C9 of docs/security.md.
#[test]
fn a_record_with_any_bit_flipped_opens_the_image_to_nobody() {
    let root = tempfile::tempdir().unwrap();
    pull(root.path(), "a");
    let flips = each_flip(root.path(), 1, |root, flip| {
        let found = history(root);
        assert!(!is_open(&found), "{flip}: {found:?}");
        pull(root, "b");
        assert!(!is_open(&history(root)), "{flip}");
    });
    assert!(flips > 100, "{flips}");
}

#[test]
fn an_intent_and_a_record_are_on_the_disk_before_they_have_their_names_and_the_names_after_them() {
    let root = tempfile::tempdir().unwrap();
    let changes = changes("pull_record_crash_tests::child_records_a_pull", root.path());
    for directory in ["pulling", "pulled"] {
        let file = format!("{directory}/sha256-");
        let at = |call: &str, of: &str| first(&changes, call, of);
        let (content, rename) = (at("fdatasync", &file), at("rename", &file));
        assert!(at("write", &file) < content && content < rename, "{changes:#?}");
        assert!(rename < at("fsync", &format!("image_manager/{directory}>")), "{changes:#?}");
    }
    let recorded = first(&changes, "rename", "pulled/sha256-");
    // Earlier ones are of remainders of unfinished files.
    let is_removal = |it: &Change| it.call == "unlink" && it.arguments.contains("pulling/sha256-");
    assert!(Some(recorded) < changes.iter().rposition(is_removal), "{changes:#?}");
}

/// The place of the first such call among all changes.
fn first(changes: &[Change], call: &str, file: &str) -> usize {
    let found = changes.iter().position(|it| it.call == call && it.arguments.contains(file));
    found.unwrap_or_else(|| panic!("no {call} of {file}: {changes:#?}"))
}
