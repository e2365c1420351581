//! Records of pulls on a real directory.

use std::os::unix::fs::PermissionsExt;

use oarsman_core::image::pull_records::ImagePullCredentials;

use super::*;

fn pull(image: &str, image_ref: &str) -> CompletedPull {
    CompletedPull {
        image: image.to_owned(),
        image_ref: image_ref.to_owned(),
        credentials: Some(ImagePullCredentials::of_pull(None)),
        at: Timestamp::from_second(100).unwrap(),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[tokio::test]
async fn intents_and_records_are_where_the_go_kubelet_looks_for_them() {
    let root = tempfile::tempdir().unwrap();
    let records = PullRecordFiles::open(root.path());
    assert!(!records.write_intent("r.io/a:1").await.unwrap());
    assert!(records.write_intent("r.io/a:1").await.unwrap(), "it is there already");
    records.record_pulled(&pull("r.io/a:1", "sha256:a")).await.unwrap();
    let pulling = root.path().join("image_manager/pulling").join(file_name("r.io/a:1"));
    let pulled = root.path().join("image_manager/pulled").join(file_name("sha256:a"));
    for path in [&pulling, &pulled] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o7777, 0o600);
        let directory = fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(directory.permissions().mode() & 0o7777, 0o700);
    }
    fs::write(root.path().join("image_manager/pulled/notes"), "").unwrap();
    let counts = PullRecordCounts { intents: 1, pulled: 1 };
    assert_eq!(records.counts().await.unwrap(), counts, "other files are none");
    let again = PullRecordFiles::open(root.path());
    assert_eq!(again.intents().await.unwrap().images, ["r.io/a:1".to_owned()].into());
    let record = again.pulled("sha256:a").await.unwrap().unwrap();
    assert!(record.credential_mapping["r.io/a"].node_pods_accessible);
    for _ in 0..2 {
        again.remove_intent("r.io/a:1").await.unwrap();
    }
    assert_eq!(again.intents().await.unwrap(), PullIntents::default());
    assert_eq!(again.pulled("sha256:b").await.unwrap(), None);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_an_error_until_the_next_pull_replaces_it() {
    let root = tempfile::tempdir().unwrap();
    let records = PullRecordFiles::open(root.path());
    records.record_pulled(&pull("r.io/a:1", "sha256:a")).await.unwrap();
    let path = root.path().join("image_manager/pulled").join(file_name("sha256:a"));
    let whole = fs::read_to_string(&path).unwrap();
    for broken in [&whole[..whole.len() / 2], "", &whole.replace("sha256:a", "sha256:b")] {
        fs::write(&path, broken).unwrap();
        assert!(records.pulled("sha256:a").await.is_err(), "{broken}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(records.pulled("sha256:a").await.is_err(), "a directory");
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "{").unwrap();
    records.record_pulled(&pull("r.io/a:1", "sha256:a")).await.unwrap();
    assert!(records.pulled("sha256:a").await.unwrap().is_some());
}

#[tokio::test]
async fn an_intent_that_cannot_be_read_counts_by_the_name_of_its_file() {
    let root = tempfile::tempdir().unwrap();
    let records = PullRecordFiles::open(root.path());
    let place = root.path().join("image_manager/pulling");
    fs::write(place.join(file_name("r.io/a:1")), "{").unwrap();
    fs::write(place.join(file_name("r.io/b:1") + ".tmp"), "{").unwrap();
    let intents = records.intents().await.unwrap();
    assert!(intents.cover(["r.io/a:1"]) && !intents.cover(["r.io/b:1"]));
}

#[tokio::test]
async fn records_of_images_that_are_gone_are_removed_unless_they_are_new() {
    let root = tempfile::tempdir().unwrap();
    let records = PullRecordFiles::open(root.path());
    records.record_pulled(&pull("r.io/a:1", "sha256:a")).await.unwrap();
    assert_eq!(records.recorded_images().await.unwrap(), ["sha256:a".to_owned()].into());
    records.remove_pulled("sha256:a", at(100)).await.unwrap();
    assert!(records.pulled("sha256:a").await.unwrap().is_some(), "of the same second");
    for _ in 0..2 {
        records.remove_pulled("sha256:a", at(101)).await.unwrap();
    }
    assert_eq!(records.pulled("sha256:a").await.unwrap(), None);
    assert!(records.recorded_images().await.unwrap().is_empty());
}

#[tokio::test]
async fn pulls_at_the_same_time_are_all_in_the_record() {
    let root = tempfile::tempdir().unwrap();
    let records = PullRecordFiles::open(root.path());
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (records, image) = (records.clone(), format!("r.io/a{number}"));
        tasks.spawn(async move { records.record_pulled(&pull(&image, "sha256:a")).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap().unwrap();
    }
    let record = records.pulled("sha256:a").await.unwrap().unwrap();
    assert_eq!(record.credential_mapping.len(), 20);
}
